#!/bin/sh
# Runs all Rust tests and lists the slowest twenty: rust-tests.sh ARGUMENTS-OF-CARGO-TEST...
#
# libtest reports durations only with an unstable option. It accepts the option when RUSTC_BOOTSTRAP is set for the
# test itself; set for cargo, the variable would rebuild every crate.
set -u
log=${CARGO_TARGET_DIR:-target}/rust-tests.log
status=${CARGO_TARGET_DIR:-target}/rust-tests.status
runner="target.'cfg(all())'.runner = ['env', 'RUSTC_BOOTSTRAP=1']"

{
    cargo test --config "$runner" "$@" --lib --bins --tests --examples -- -Zunstable-options --report-time
    echo $? > "$status"
} 2>&1 | tee "$log"
[ "$(cat "$status")" = 0 ] || exit "$(cat "$status")"
cargo test "$@" --doc || exit

echo "The slowest twenty tests, in seconds:"
sed -n 's/^test \(.*\) \.\.\. ok <\(.*\)s>$/\2 \1/p' "$log" | sort -rn | head -20
