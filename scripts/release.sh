#!/bin/sh
# Collects in target/release-files the packages that `make bundle` made for this system, the
# terminal program, software bills of materials (CycloneDX), release notes and checksums, signed if
# MINISIGN_KEY names a key. Publishes nothing.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
target=${CARGO_TARGET_DIR:-target}
files=$target/release-files
rm -rf "$files" && mkdir -p "$files"

fail() { echo "release: $*" >&2; exit 1; }

# The same version everywhere; Tauri takes it from Cargo.toml.
grep -q "<release version=\"$version\"" src-tauri/linux/metainfo.xml || fail "metainfo.xml does not name $version"
grep -q "\"version\": \"$version\"" ui/package.json || fail "ui/package.json does not have version $version"
grep -q "Foretoken_${version}_amd64.deb" src-tauri/linux/dev.foretoken.Foretoken.yml || fail "the Flatpak manifest does not have version $version"

find "$target/dist/bundle" -type f \( -name '*.deb' -o -name '*.AppImage' -o -name '*.dmg' -o -name '*-setup.exe' \) -name "*$version*" \
    -exec cp {} "$files" \;
[ -n "$(ls "$files")" ] || fail "there is no package of $version; run \`make bundle\` first"

system=$(rustc -vV | sed -n 's/^host: //p')
# Reproducible archives, if tar supports them.
same=
tar --version | grep -q GNU && same="--mtime=@0 --owner=0 --group=0 --numeric-owner"
# shellcheck disable=SC2086 # one word per option
tar $same -C "$target/dist" -cf - foretoken-cli |
    gzip -n > "$files/foretoken-cli-$version-$system.tar.gz"

cargo cyclonedx --manifest-path src-tauri/Cargo.toml --format json --target "$system" --override-filename foretoken.cdx >&2
mv src-tauri/foretoken.cdx.json "$files/foretoken-$version.cdx.json"
mv crates/cli/foretoken.cdx.json "$files/foretoken-cli-$version.cdx.json"
# Includes build dependencies, because some of them are part of the page.
npm --prefix ui sbom --sbom-format cyclonedx > "$files/foretoken-page-$version.cdx.json"
find . -name foretoken.cdx.json -not -path "./$target/*" -delete

# A version without a section of its own uses the unreleased one.
notes() { awk -v part="$1" '/^## / { on = index($0, "[" part "]") } on && !/^## /' CHANGELOG.md; }
notes "$version" > "$files/notes.md"
[ -s "$files/notes.md" ] || notes Unreleased > "$files/notes.md"

(cd "$files" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
[ -z "${MINISIGN_KEY-}" ] || minisign -S -s "$MINISIGN_KEY" -m "$files/SHA256SUMS" -t "Foretoken $version" >&2
