# shellcheck shell=bash
# What the scripts share: sourced by them, not run. Goes to the root of the repository.

asked_from=$PWD
script=${0##*/}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

say() { echo "scripts/$script: $*" >&2; }

# The comment at the top of the script.
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "scripts/$script"; }

# The path that the caller named, who may stand elsewhere.
path_given() { (cd "$asked_from" && realpath -m -- "$1"); }
