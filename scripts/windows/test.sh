#!/bin/sh
# Builds the terminal program and the tests of most crates for Windows on Linux, runs them under
# Wine, and lists how many passed in each suite. docs/systems.md says what Wine cannot test.
#
#   scripts/windows/test.sh [FILTER...]     of all tests, those whose names contain one of these
set -eu
cd "$(dirname "$0")/../.."

TARGET=x86_64-pc-windows-gnu
SUITES="--lib --test app --test kill --test download --test crash --test erased"
# Wine has no software GPU, which these tests need.
WITHOUT_GPU="--skip gpu::tests --skip gpu::faults --skip whose_gpu_is_lost_or_hangs
    --skip larger_than_the_gpus_memory --skip a_cache_that_cannot_grow_ends_the_reply"
log=${CARGO_TARGET_DIR:-target}/windows-tests.log

say() { echo "test-windows: $*" >&2; }

export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="$PWD/scripts/windows/wine.sh"
# Folder of WebView2's loader, which the window's tests are linked with.
programs=$(realpath -m "${CARGO_TARGET_DIR:-target}/$TARGET/debug")
export WINEPATH="Z:$programs"

say "building"
scripts/windows/cross.sh cargo build --workspace --locked --bin foretoken-cli --target "$TARGET"
# shellcheck disable=SC2086 # one word per option
scripts/windows/cross.sh cargo test --workspace --locked $SUITES --target "$TARGET" --no-run

say "running"
scripts/windows/wine.sh "$programs/foretoken-cli.exe" devices
status=0
# shellcheck disable=SC2086 # one word per option
scripts/windows/cross.sh cargo test --workspace --locked $SUITES --target "$TARGET" --no-fail-fast -- \
    $WITHOUT_GPU "$@" >"$log" 2>&1 || status=$?
# Of the tests across crates, the one of the bits that every system has.
scripts/windows/cross.sh cargo test --workspace --locked --test integration --target "$TARGET" -- \
    hashes:: >>"$log" 2>&1 || status=$?

# The suite's name is part of the program's name, before a number.
awk '
    / Running / { suite = $NF; sub(/.*\//, "", suite); sub(/-[0-9a-f]+\.exe.*/, "", suite) }
    /^test .* FAILED$/ { print "    failed: " $2 }
    /didn.t exit successfully/ && !results { print suite " did not run to its end" }
    / Running / { results = 0 } /^test result:/ { results = 1 }
    /^test result:/ && $4 + $6 { printf "%-20s %4d passed %3d failed\n", suite, $4, $6 }' "$log"
[ "$status" = 0 ] || say "some tests failed, see $log"
exit "$status"
