#!/bin/sh
# Builds the Windows installer on Linux, in target/dist/bundle/nsis, with SmolLM2 if it could be
# downloaded.
#
#   scripts/windows/bundle.sh [PROFILE]     `dist` if none is named; `dev` is for a quick try
set -eu
cd "$(dirname "$0")/../.."

TARGET=x86_64-pc-windows-gnu
profile=${1:-dist}
target=${CARGO_TARGET_DIR:-$PWD/target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
installer=$target/$profile/bundle/nsis/Foretoken_${version}_x64-setup.exe

fail() { echo "bundle-windows: $*" >&2; exit 1; }

scripts/windows/cross.sh cargo build --workspace --locked --profile "$profile" --bin foretoken --bin foretoken-cli \
    --target "$TARGET"
folder=$target/$TARGET/$([ "$profile" = dev ] && echo debug || echo "$profile")

# WebView2's loader is beside the programs; all other libraries belong to Windows.
for program in foretoken foretoken-cli; do
    x86_64-w64-mingw32-objdump -p "$folder/$program.exe" | awk '/DLL Name:/ { print $3 }' | grep -i '^lib' &&
        fail "$program needs the libraries above"
done

mkdir -p "$(dirname "$installer")"
makensis -V2 -WX -INPUTCHARSET UTF8 $([ "$profile" != dev ] || echo -DQUICK) \
    -DVERSION="$version" -DPROGRAM="$folder" -DSOURCES="$PWD" -DOUT="$installer" src-tauri/windows/installer.nsi
bytes=$(stat -c %s "$installer")
[ "$bytes" -lt 150000000 ] || fail "$installer has $bytes bytes, more than 150 MB"
echo "$installer: $((bytes / 1000000)) MB"
