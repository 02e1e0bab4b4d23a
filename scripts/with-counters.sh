#!/bin/sh
# The compiler, asked to count in the code of this workspace which edges were taken (RUSTC_WORKSPACE_WRAPPER).
# With them `fuzz` sees which damage does something new; the programs that others wrote stay as they are built.
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
