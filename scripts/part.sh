#!/bin/sh
# Runs a part of `make test` and records its duration: part.sh NOTES NAME COMMAND...
notes=$1 name=$2
shift 2
echo "== $name"
begin=$(date +%s)
"$@"
status=$?
printf '%6d s  %s\n' $(($(date +%s) - begin)) "$name" >> "$notes"
exit $status
