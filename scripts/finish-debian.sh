#!/bin/sh
# Finishes a Debian package made by Tauri: adds the terminal program and manual pages, puts the
# changelog where Debian expects it, declares the glibc version the programs need, and packs it
# reproducibly.
#
#   scripts/finish-debian.sh PACKAGE.deb TERMINAL
#
# SOURCE_DATE_EPOCH sets the time of the files; the default is the last commit's.
set -eu
umask 022
cd "$(dirname "$0")/.."

say() { echo "finish-debian: $*" >&2; }
fail() { say "$*"; exit 1; }

[ $# = 2 ] || fail "expected a package and the terminal, found $# arguments"
command -v dpkg-deb >/dev/null || { say "dpkg-deb is missing, so the package stays unchanged, without the terminal program" && exit; }
package=$1 terminal=$2
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
dpkg-deb --raw-extract "$package" "$root"
name=$(dpkg-deb --field "$package" Package)

cp "$terminal" "$root/usr/bin/foretoken-cli"
strip --strip-unneeded "$root"/usr/bin/*
mkdir -p "$root/usr/share/man/man1"
for page in src-tauri/linux/*.1; do
    gzip -9n < "$page" > "$root/usr/share/man/man1/$(basename "$page").gz"
done
rm -rf "$root/usr/share/doc/Foretoken"
gzip -9n < CHANGELOG.md > "$root/usr/share/doc/$name/changelog.gz"

# The newest version among the symbols that the programs need.
glibc=$(readelf --version-info "$root"/usr/bin/* | sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort -Vu | tail -n1)
[ -n "$glibc" ] || fail "the programs do not name the glibc version they need"
# Kibibytes, each file rounded up, like dpkg-gencontrol.
size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
sed -i "s/libc6 (>= [0-9.]*)/libc6 (>= $glibc)/; s/^Installed-Size: .*/Installed-Size: $size/" "$root/DEBIAN/control"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum > DEBIAN/md5sums)

chmod -R u=rwX,go=rX "$root"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
# Most of it is weights, which xz compresses by a tenth in minutes.
dpkg-deb --root-owner-group -Zgzip --build "$root" "$package.new" >/dev/null
mv "$package.new" "$package"
