"""Prints of what the kernel tells in directories, a path for each event, until its input ends."""

import ctypes
import os
import select
import struct
import sys

# IN_MODIFY, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE
MASK = 0x2 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200

libc = ctypes.CDLL(None, use_errno=True)
queue = libc.inotify_init1(0)
dirs = {libc.inotify_add_watch(queue, os.fsencode(path), MASK): path for path in sys.argv[1:]}
assert min(dirs) > 0, os.strerror(ctypes.get_errno())
while sys.stdin not in select.select([queue, sys.stdin], [], [])[0]:
    heard = os.read(queue, 65536)
    while heard:
        watch, _, _, length = struct.unpack_from("iIII", heard)
        name = os.fsdecode(heard[16 : 16 + length].rstrip(b"\0"))
        print(f"{dirs[watch]}/{name}", flush=True)
        heard = heard[16 + length :]
