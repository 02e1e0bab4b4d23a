#!/bin/sh
# Compiler wrapper (RUSTC_WORKSPACE_WRAPPER) that inserts coverage counters into this workspace's
# code, so that `fuzz` sees new coverage. Dependencies are compiled without them.
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
