#!/bin/sh
# Builds foretoken-cli for NVIDIA GPUs, on a Linux computer that needs no GPU, no driver and no
# CUDA.
#
#   scripts/cuda.sh build                          builds $CARGO_TARGET_DIR/cuda
#   scripts/cuda.sh stubs SOURCES FOLDER VERSION   builds stubs of CUDA VERSION's libraries, with
#                                                  the functions that cudarc's SOURCES declare
#
# Uses an installed toolkit: that of CUDA_HOME, or of the nvcc on PATH. Otherwise NVIDIA's compiler
# is installed from PyPI into .tools/cuda. CUDA_COMPUTE_CAP sets the GPU generation of the binary.
set -eu
cd "$(dirname "$0")/.."

# Compiler of candle's kernels: 104 MB. Libraries that the binary opens at run time: 480 MB.
COMPILER=scripts/wheels/cuda-compiler.txt
LIBRARIES=scripts/wheels/cuda-libraries.txt

say() { echo "cuda: $*" >&2; }
fail() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
has_pip() { has python3 && python3 -m pip --version >/dev/null 2>&1; }

# gpu_here: prints the compute capability of the newest NVIDIA GPU, such as 86; nothing without one.
gpu_here() {
    has nvidia-smi || return 0
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -rn | sed -n '1s/^\([0-9]*\)\.\([0-9]\)$/\1\2/p'
}

choose_generation() {
    [ -z "${CUDA_COMPUTE_CAP-}" ] || return 0
    CUDA_COMPUTE_CAP=$(gpu_here)
    [ -n "$CUDA_COMPUTE_CAP" ] || {
        CUDA_COMPUTE_CAP=80
        say "no GPU found, so this build is for generation 8.x (Ampere, Ada); set CUDA_COMPUTE_CAP=90 or 120 for another"
    }
}

# Sets toolkit, the folder with bin/nvcc.
find_toolkit() {
    if [ -n "${CUDA_HOME-}" ]; then
        [ -x "$CUDA_HOME/bin/nvcc" ] || fail "expected CUDA's compiler at $CUDA_HOME/bin/nvcc, found none. Correct CUDA_HOME or unset it, then run this again."
        toolkit=$CUDA_HOME
    elif has nvcc; then
        toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
    else
        install_toolkit
        toolkit=$PWD/.tools/cuda/nvidia/cu13
    fi
}

install_toolkit() {
    lists="-r $COMPILER" size="104 MB"
    [ -z "$(gpu_here)" ] || lists="$lists -r $LIBRARIES" size="585 MB"
    # shellcheck disable=SC2086 # one word per list
    packages=$(printf '%s\n' $lists | grep -v '^-r$' | xargs cat | sed -n 's/^\([^# ]*==[^ ]*\).*/\1/p')
    installed=.tools/cuda/.installed
    [ "$(cat $installed 2>/dev/null)" = "$packages" ] && return
    has_pip || fail "CUDA's compiler (nvcc) and pip, which downloads it, are both missing. Install one of them (on Debian: python3-pip), then run this again."
    say "downloading NVIDIA's compiler into .tools/cuda: $size from PyPI, under NVIDIA's licence"
    # shellcheck disable=SC2086 # one word per package
    printf '  %s\n' $packages >&2
    rm -rf .tools/cuda
    # shellcheck disable=SC2086
    python3 -m pip install --quiet --no-deps --only-binary :all: --require-hashes --target .tools/cuda $lists
    echo "$packages" >$installed
}

# Prints the source folder of the cudarc in Cargo.lock.
cudarc_sources() {
    cargo metadata --locked --format-version 1 --manifest-path crates/cli/Cargo.toml --features cuda |
        tr , '\n' | sed -n 's|.*"manifest_path":"\(.*/cudarc-[^/]*\)/Cargo.toml".*|\1/src|p'
}

# Five libraries, all in libcuda.a: a linker that searches this folder first uses them.
stubs() {
    mkdir -p "$2"
    for library in driver cublas cublaslt curand nvrtc; do
        awk -v library=$library '
            declared { match($0, /fn [A-Za-z0-9_]+/); print "F(" library ", " (/-> \*const .*c_char;$/ ? "text" : "status") ", " substr($0, RSTART + 3, RLENGTH - 3) ")" }
            { declared = /extern "C" \{$/ }' "$1/$library/sys/mod.rs"
    done | sort -u >"$2/functions.h"
    cc -O2 -Wall -Wno-unused-function -fPIC -c "-DVERSION=\"$3\"" -I "$2" scripts/cuda-stubs.c -o "$2/cuda-stubs.o"
    ar rcs "$2/libcuda.a" "$2/cuda-stubs.o"
    for library in cublas cublasLt curand nvrtc; do ar rcs "$2/lib$library.a"; done
}

# NVIDIA's own runtime library, which opens the driver on first use.
find_static_runtime() {
    for folder in "$toolkit"/lib64 "$toolkit"/lib "$toolkit"/targets/*/lib /usr/lib/"$(uname -m)"-linux-gnu; do
        [ -e "$folder/libcudart_static.a" ] && echo "$folder/libcudart_static.a" && return
    done
    fail "expected libcudart_static.a in the CUDA toolkit $toolkit, found none. Install the toolkit's development files, then run this again."
}

# The libraries that the stubs open, if the toolkit has them.
link_libraries() {
    for library in "$toolkit"/lib64/lib*.so.* "$toolkit"/lib/lib*.so.*; do
        case "${library##*/}" in
            libcublas.so.* | libcublasLt.so.* | libcurand.so.* | libnvrtc*.so.*) ;;
            *) continue ;;
        esac
        [ ! -e "$library" ] || ln -sf "$library" "$1/"
    done
}

build() {
    [ "$(uname)" = Linux ] || fail "expected Linux, found $(uname). Elsewhere, build with cargo and an installed CUDA toolkit."
    choose_generation
    find_toolkit
    version=$("$toolkit/bin/nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    sources=$(cudarc_sources)
    runtime=$(find_static_runtime)
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/cuda"

    # The name contains a digest of the stubs, because cargo links again only if its arguments
    # change.
    made_of=$(printf %s "$version $sources" | cat - scripts/cuda.sh scripts/cuda-stubs.c | cksum | cut -d' ' -f1)
    stubs=$CARGO_TARGET_DIR/stubs-$made_of
    stubs "$sources" "$stubs" "$version"
    ln -sf "$runtime" "$stubs/libcudart.a"

    # Input of the build scripts of cudarc and candle's kernels.
    export CUDA_COMPUTE_CAP CUDA_HOME="$toolkit" CUDA_PATH="$toolkit" CUDA_ROOT="$toolkit"
    export PATH="$toolkit/bin:$PATH" NVCC_CCBIN="${NVCC_CCBIN:-g++}"
    say "building for GPUs of generation $CUDA_COMPUTE_CAP; the first build takes several minutes"
    # Libraries are also searched next to the binary, where links lead to the toolkit's: an absolute
    # path in the binary could belong to anybody on another computer.
    cargo rustc --release --locked -p foretoken-cli --features cuda --bin foretoken-cli -- \
        -L "native=$stubs" -C "link-arg=-Wl,--enable-new-dtags,-rpath,\$ORIGIN"
    binary=$CARGO_TARGET_DIR/release/foretoken-cli
    scripts/check-libraries.sh "$binary"
    link_libraries "$CARGO_TARGET_DIR/release"
    say "built $binary, $(($(wc -c <"$binary") / 1000000)) MB"
}

case "$#,${1-}" in
    1,build) build ;;
    4,stubs) stubs "$2" "$3" "$4" ;;
    *) fail "expected build, or stubs SOURCES FOLDER VERSION; found '$*'" ;;
esac
