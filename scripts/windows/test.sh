#!/bin/sh
# Builds the terminal and the tests for Windows on Linux, runs them under Wine, and lists how many passed in each
# suite. What Wine itself cannot do is left out, with the reason here and in docs/systems.md.
#
#   scripts/windows/test.sh [FILTER...]     of all tests, those whose names contain one of these
set -eu
cd "$(dirname "$0")/../.."

TARGET=x86_64-pc-windows-gnu
target=${CARGO_TARGET_DIR:-$PWD/target}
log=$target/windows-tests

say() { echo "test-windows: $*" >&2; }

# leave_out TEST REASON
skipped=
leave_out() { skipped="$skipped --skip $1"; }

export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="$PWD/scripts/windows/wine.sh"
scripts/windows/wine.sh cmd /c ver >&2

say "building"
scripts/windows/cross.sh cargo build --workspace --locked --lib --bins --tests --target "$TARGET"

say "running"
status=0
# shellcheck disable=SC2086 # one word an option
scripts/windows/cross.sh cargo test --workspace --locked --lib --bins --tests --target "$TARGET" --no-fail-fast -- \
    $skipped "$@" >"$log" 2>&1 || status=$?

# The name of a suite is in the name of its program, before a number.
awk '
    / Running / { suite = $NF; sub(/.*[\/\\]/, "", suite); sub(/-[0-9a-f]+\.exe.*/, "", suite) }
    /^test result:/ { printf "%-24s %5d passed %4d failed %4d left out\n", suite, $4, $6, $(NF > 10 ? 10 : 8) }
    /^test .* FAILED$/ { print "    " $2 }' "$log"
exit $status
