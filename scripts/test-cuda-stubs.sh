#!/bin/sh
# Tests the guarantees of scripts/cuda-stubs.c with small fake libraries: needs neither a GPU nor
# CUDA.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for library in driver cublas cublaslt curand nvrtc; do
    mkdir -p "$work/sources/$library/sys"
    : >"$work/sources/$library/sys/mod.rs"
done
mkdir "$work"/none "$work"/driver "$work"/cublas
# Searched before the real libraries, if this computer has them: an empty file cannot be opened.
for library in libcuda.so.1 libcuda.so libcublas.so.13 libcublas.so libcublasLt.so.13 libcublasLt.so; do
    : >"$work/none/$library"
done

# Functions as cudarc declares them, one per line.
declare_function() { printf '    {\n        extern "C" {\n            fn %s\n        }\n    }\n' "$2" >>"$work/sources/$1/sys/mod.rs"; }
declare_function driver 'cuInit(Flags: ::core::ffi::c_uint) -> CUresult;'
declare_function driver 'cuSum(a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i32, h: i32, i: i32, x: f64) -> CUresult;'
declare_function driver 'cuNewer() -> CUresult;'
declare_function cublas 'cublasTwice(number: i32) -> cublasStatus_t;'
declare_function cublas 'cublasGetStatusString(status: cublasStatus_t) -> *const ::core::ffi::c_char;'
scripts/cuda.sh stubs "$work/sources" "$work/stubs" 13

# A driver, and a cuBLAS that lacks one function.
cat >"$work/driver.c" <<'C'
int cuInit(unsigned flags) { return (int)flags; }
int cuSum(int a, int b, int c, int d, int e, int f, int g, int h, int i, double x) { return a + b + c + d + e + f + g + h + i + (int)x; }
C
echo 'int cublasTwice(int number) { return 2 * number; }' >"$work/cublas.c"
cc -shared -fPIC "$work/driver.c" -o "$work/driver/libcuda.so.1"
cc -shared -fPIC "$work/cublas.c" -o "$work/cublas/libcublas.so.13"

cat >"$work/program.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned), cuSum(int, int, int, int, int, int, int, int, int, double), cuNewer(void), cublasTwice(int);
const char *cublasGetStatusString(int);
int main(int count, char **arguments) {
    printf("%d ", cuInit(count > 1 ? (unsigned)atoi(arguments[1]) : 0));
    printf("%d %d ", cuSum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10.0), cuNewer());
    printf("%d %s\n", cublasTwice(21), cublasGetStatusString(1));
}
C
# With -rdynamic a program exports everything it does not hide.
cc -rdynamic "$work/program.c" -o "$work/program" -L"$work/stubs" -lcublas -lcublasLt -lcurand -lnvrtc -lcuda -Wl,--enable-new-dtags "-Wl,-rpath,\$ORIGIN"

fail() { echo "test-cuda-stubs: $*" >&2; exit 1; }

# expect WHAT FOLDERS FLAGS PRINTED: compares the program's output, with these folders in
# LD_LIBRARY_PATH and these flags for cuInit.
expect() {
    printed=$(LD_LIBRARY_PATH=$2:$work/none "$work/program" "$3" 2>&1) || printed="$printed, and ended with $?"
    [ "$printed" = "$4" ] && return
    fail "$1: expected '$4', found '$printed'"
}
missing="this function's library is missing"

expect "no libraries" "$work/none" 0 "34 34 34 1 $missing"
expect "a driver, but no cuBLAS" "$work/driver" 0 "0 55 34 1 $missing"
expect "both, less two functions" "$work/driver:$work/cublas" 0 "0 55 34 42 $missing"
expect "a driver that finds no GPU: cuBLAS is not opened" "$work/driver:$work/cublas" 100 "100 55 34 1 $missing"

mv "$work/cublas/libcublas.so.13" "$work/"
rm "$work/none/libcublas.so.13"
expect "cuBLAS next to the program" "$work/driver" 0 "0 55 34 42 $missing"

found=$(readelf --dynamic --dyn-syms --wide "$work/program" | grep -E "NEEDED.*lib(cu|nvrtc)| (cu|nvrtc)[A-Z]") &&
    fail "the program should neither need nor export CUDA's libraries, found $found"
echo "test-cuda-stubs: passed" >&2
