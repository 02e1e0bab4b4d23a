#!/bin/sh
# Audits dependencies: licences, sources, known vulnerabilities. Vulnerabilities are requested over
# the network; if that fails, a message says so and the other checks still count.
set -eu
cd "$(dirname "$0")/.."

say() { echo "audit: $*" >&2; }

cargo deny check licenses bans sources
node scripts/page-licences.mjs
if cargo deny fetch db 2>/dev/null; then
    cargo deny check advisories
else
    say "NOT CHECKED: advisories of Rust crates, because their database could not be fetched from GitHub"
fi

report=$(mktemp)
trap 'rm -f "$report"' EXIT
if npm --prefix ui audit --json >"$report" 2>/dev/null; then
    say "no known vulnerability in the page's packages"
elif grep -q '"auditReportVersion"' "$report"; then
    npm --prefix ui audit
else
    say "NOT CHECKED: the page's packages, because the registry did not respond"
fi
