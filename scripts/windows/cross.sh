#!/bin/sh
# Runs a command such as cargo that compiles and links for Windows with mingw-w64's compiler, in the
# variant with POSIX threads, which the C++ library requires. That library is linked statically.
#
#   scripts/windows/cross.sh cargo build --target x86_64-pc-windows-gnu ...
set -eu
export CC_x86_64_pc_windows_gnu=x86_64-w64-mingw32-gcc-posix
export CXX_x86_64_pc_windows_gnu=x86_64-w64-mingw32-g++-posix
export AR_x86_64_pc_windows_gnu=x86_64-w64-mingw32-ar
export CXXSTDLIB_STATIC_x86_64_pc_windows_gnu=1
CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=$(cd "$(dirname "$0")" && pwd)/link-gcc.sh
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER
exec "$@"
