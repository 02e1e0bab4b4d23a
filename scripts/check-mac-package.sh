#!/bin/sh
# Checks the result of `make bundle` on a Mac, and starts it once; docs/macos.md lists the
# expectations.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "check-mac-package: $*" >&2; exit 1; }

bundle=${CARGO_TARGET_DIR:-target}/dist/bundle
app=$bundle/macos/Foretoken.app
facts=$app/Contents/Info.plist

plutil -lint "$facts"
# expect KEY VALUE: checks an entry of Info.plist.
expect() {
    found=$(plutil -extract "$1" raw "$facts") || fail "Info.plist has no $1"
    [ "$found" = "$2" ] || fail "$1 is $found, expected $2"
}
expect CFBundleIdentifier dev.foretoken
expect CFBundleExecutable foretoken
expect CFBundleShortVersionString "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)"
expect CFBundleDocumentTypes.0.CFBundleTypeExtensions.0 gguf
for file in MacOS/foretoken Resources/icon.icns Resources/starter/starter-target-Q8_0.gguf; do
    [ -e "$app/Contents/$file" ] || fail "$file is missing"
done
# Only system libraries: all others are in the bundle.
otool -L "$app/Contents/MacOS/foretoken" | tail -n +2 | awk '{ print $1 }' | grep -v '^/usr/lib/\|^/System/' &&
    fail "it needs the libraries above"
codesign --verify --deep "$app" || echo "not signed: users have to allow it in the system settings"
image=$(ls "$bundle"/dmg/*.dmg)
[ "$(stat -f %z "$image")" -lt 150000000 ] || fail "$image has more than 150 MB"

# The application starts and keeps running.
FORETOKEN_DATA_DIR=$(mktemp -d) "$app/Contents/MacOS/foretoken" &
started=$!
sleep 15
kill -0 "$started" || fail "it ended within 15 seconds"
kill "$started"
echo "$image: $(($(stat -f %z "$image") / 1000000)) MB, started"
