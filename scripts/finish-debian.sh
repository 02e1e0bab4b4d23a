#!/bin/sh
# Finishes a package for Debian that Tauri made: adds the terminal and the manual pages, puts the changes where Debian
# looks for them, says which glibc the programs need, and packs it so that equal contents become equal bytes.
#
#   scripts/finish-debian.sh PACKAGE.deb TERMINAL
#
# SOURCE_DATE_EPOCH dates the files; without it the last commit does.
set -eu
umask 022
cd "$(dirname "$0")/.."

say() { echo "finish-debian: $*" >&2; }
fail() { say "$*"; exit 1; }

[ $# = 2 ] || fail "expected a package and the terminal, found $# arguments"
command -v dpkg-deb >/dev/null || { say "dpkg-deb is missing, so the package stays as it is, without the terminal" && exit; }
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

# The newest of the versions that the programs' symbols ask for.
glibc=$(readelf --version-info "$root"/usr/bin/* | sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort -Vu | tail -n1)
[ -n "$glibc" ] || fail "the programs do not say which glibc they need"
# Kibibytes, each file rounded up, as dpkg-gencontrol counts.
size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
sed -i "s/libc6 (>= [0-9.]*)/libc6 (>= $glibc)/; s/^Installed-Size: .*/Installed-Size: $size/" "$root/DEBIAN/control"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum > DEBIAN/md5sums)

chmod -R u=rwX,go=rX "$root"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
# Most of it is weights, in which xz searches for minutes to find a tenth.
dpkg-deb --root-owner-group -Zgzip --build "$root" "$package.new" >/dev/null
mv "$package.new" "$package"
