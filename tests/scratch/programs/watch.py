"""Prints what watchdog tells of a directory and all below it, until its input ends."""

import sys

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer


class Printer(FileSystemEventHandler):
    def on_any_event(self, event):
        print(event.event_type, event.src_path, getattr(event, "dest_path", ""), sep="\t", flush=True)


observer = Observer()
observer.schedule(Printer(), sys.argv[1], recursive=True)
observer.start()
sys.stdin.read()
observer.stop()
observer.join()
