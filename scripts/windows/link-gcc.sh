#!/bin/sh
# Links for Windows with mingw-w64's gcc, adding an fma that rounds once. Rust derives the linker's
# options from this file's name.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
object=${CARGO_TARGET_DIR:-$here/../../target}/fmaf-$$.o
trap 'rm -f "$object"' EXIT
x86_64-w64-mingw32-gcc-posix -O2 -ffp-contract=off -c "$here/fmaf.c" -o "$object"
x86_64-w64-mingw32-gcc-posix "$object" "$@"
