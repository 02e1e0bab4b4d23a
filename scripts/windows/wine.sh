#!/bin/sh
# Runs a Windows program under Wine, with a Windows of its own in target/wine.
#
#   scripts/windows/wine.sh PROGRAM.exe [ARGUMENT...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export WINEPREFIX="${WINEPREFIX:-${CARGO_TARGET_DIR:-$here/../../target}/wine}" WINEDEBUG="${WINEDEBUG:--all}"
# Debian's is not on the path, and its script also requires the 32-bit version.
for wine in wine64 /usr/lib/wine/wine64 wine; do
    ! command -v $wine >/dev/null || break
done
system=$WINEPREFIX/drive_c/windows/system32
if [ ! -e "$system/bcryptprimitives.dll" ]; then
    mkdir -p "$WINEPREFIX"
    $wine wineboot --init >/dev/null 2>&1
    [ -e "$system/bcryptprimitives.dll" ] ||
        x86_64-w64-mingw32-gcc -shared -O2 "$here/bcryptprimitives.c" -o "$system/bcryptprimitives.dll" -ladvapi32
fi
exec $wine "$@"
