#!/bin/sh
# What others wrote and we build in: licences, sources, known weaknesses. What is known of weaknesses is asked over
# the network; where it cannot be had, that is said and the rest still counts.
set -eu
cd "$(dirname "$0")/.."

say() { echo "audit: $*" >&2; }

cargo deny check licenses bans sources
node scripts/page-licences.mjs
if cargo deny fetch db 2>/dev/null; then
    cargo deny check advisories
else
    say "NOT CHECKED: the advisories of Rust's crates, since their database could not be fetched from GitHub"
fi

report=$(mktemp)
trap 'rm -f "$report"' EXIT
if npm --prefix ui audit --json >"$report" 2>/dev/null; then
    say "no known weakness in the page's packages"
elif grep -q '"auditReportVersion"' "$report"; then
    npm --prefix ui audit
else
    say "NOT CHECKED: the page's packages, since the registry did not answer what is known of them"
fi
