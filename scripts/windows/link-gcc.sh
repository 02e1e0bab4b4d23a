#!/bin/sh
# Links for Windows: as mingw-w64 does, with a multiply-add that rounds once. Rust knows by its name how it is called.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
object=${CARGO_TARGET_DIR:-$here/../../target}/fmaf-$$.o
trap 'rm -f "$object"' EXIT
x86_64-w64-mingw32-gcc-posix -O2 -ffp-contract=off -c "$here/fmaf.c" -o "$object"
x86_64-w64-mingw32-gcc-posix "$object" "$@"
