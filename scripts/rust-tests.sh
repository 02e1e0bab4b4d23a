#!/bin/sh
# Runs all Rust tests and lists the slowest twenty: rust-tests.sh ARGUMENTS-OF-CARGO-TEST...
# With FORETOKEN_NIGHTLY it also runs the examples in comments.
#
# libtest reports durations only with an unstable option. It accepts the option when RUSTC_BOOTSTRAP is set for the
# test itself; set for cargo, the variable would rebuild every crate.
set -u
folder=${CARGO_TARGET_DIR:-target}
mkdir -p "$folder"
log=$folder/rust-tests.log
status=$folder/rust-tests.status
runner="target.'cfg(all())'.runner = ['env', 'RUSTC_BOOTSTRAP=1']"

{
    cargo test --config "$runner" "$@" --tests -- -Zunstable-options --report-time
    echo $? > "$status"
} 2>&1 | tee "$log"
[ "$(cat "$status")" = 0 ] || exit "$(cat "$status")"
[ -z "${FORETOKEN_NIGHTLY:-}" ] || cargo test "$@" --doc || exit

echo "The slowest twenty tests, in seconds:"
sed -n 's/^test \(.*\) \.\.\. ok <\(.*\)s>$/\2 \1/p' "$log" | sort -rn | head -20
