# shellcheck shell=bash
# What the scripts share that run other people's programs inside a mount: sourced by them after common.sh.

# Sets `workfs` to the program that was given, $1, or to the release build, which is made.
choose_workfs() {
    workfs=$1
    if [[ -z $workfs ]]; then
        scripts/setup --build
        cargo build --release --locked
        workfs=$(realpath "${CARGO_TARGET_DIR:-target}/release/workfs")
    fi
    [[ -f $workfs && -x $workfs ]] || { say "$workfs is no program" && exit 2; }
}

# Makes a directory `dir` below $1 (or where none is named, the usual one for temporary files) with an empty
# directory `mount` and room for a store, `store`. All of it goes when the script ends, and what is mounted
# there is unmounted first: the store's mounts, and those that the script names in `mounted`.
mounted=()
make_room() {
    local base=${TMPDIR:-/tmp}
    if [[ -n $1 ]]; then base=$(path_given "$1"); fi
    mkdir -p "$base"
    dir=$(mktemp -d "$(realpath "$base")/workfs-$script.XXXXXX")
    store=$dir/$script.db mount=$dir/mount
    trap leave EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir "$mount"
}
leave() {
    local at
    "$workfs" --quiet --store "$store" unmount --all --lazy 2>/dev/null || true
    for at in "${mounted[@]}"; do
        if grep -qF -- " $at " /proc/self/mountinfo; then umount -- "$at" || true; fi
    done
    if grep -qF -- " $dir/" /proc/self/mountinfo; then
        say "something is still mounted below $dir"
    else
        rm -rf --one-file-system -- "$dir"
    fi
}

# Whether the store is well; what an unclean one says is in the log that this prints.
store_is_well() {
    "$workfs" --store "$store" fsck >"$dir/fsck" 2>&1 || { cat "$dir/fsck" >&2 && return 1; }
}
