#!/bin/sh
# Installs a Debian package of Foretoken on this computer, chats with it under a display of its own, removes it, and
# looks for what it left. Where Foretoken is installed already, it does nothing.
#
#   scripts/test-package.sh PACKAGE.deb
set -eu
cd "$(dirname "$0")/.."

say() { echo "test-package: $*" >&2; }
fail() { say "$*"; exit 1; }

[ $# = 1 ] || fail "expected one package, found $#"
package=$(realpath "$1")
name=$(dpkg-deb --field "$package" Package)
! dpkg-query --status "$name" >/dev/null 2>&1 || fail "$name is installed. Remove it first, then run this again."
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

# There is no address of a maintainer yet, and Tauri puts the changes into a folder named with a capital.
say "what lintian says"
lintian --fail-on error --suppress-tags malformed-contact,no-changelog "$package" || fail "lintian found errors"
contents=$home/contents
dpkg-deb --extract "$package" "$contents"
desktop-file-validate "$contents"/usr/share/applications/*.desktop
appstreamcli validate --no-net "$contents"/usr/share/metainfo/*.xml
size=$(stat -c %s "$package")
[ "$size" -lt 150000000 ] || fail "the package has $size bytes, more than 150 MB"
rm -rf "$contents"

say "installing $(basename "$package"), $((size / 1000000)) MB"
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
files=$(dpkg-query --listfiles "$name")

# The desktop knows what opens a model's file.
cp starter/starter-draft-Q8_0.gguf "$home/a model.gguf"
kind=$(gio info -a standard::content-type "$home/a model.gguf" | sed -n 's/.*content-type: //p')
[ "$kind" = application/x-gguf ] || fail "a model's file is taken for $kind"
program=$(HOME=$home xdg-mime query default "$kind")
[ "$program" = Foretoken.desktop ] || fail "a model's file is opened by '$program'"
say "a model's file is $kind and opened by $program"

FORETOKEN_APPLICATION=/usr/bin/foretoken HOME=$home "${CARGO_TARGET_DIR:-target}/debug/examples/installed"

# A second start gives its file to the first and ends.
HOME=$home FORETOKEN_DATA_DIR=$home/data xvfb-run --auto-servernum dbus-run-session -- sh -c '
    foretoken & first=$!
    sleep 8
    timeout 20 foretoken "$1" || exit 1
    sleep 4
    kill "$first" 2>/dev/null || exit 2
' sh "$home/a model.gguf" 2>/dev/null || fail "a second start does not end, or the first did ($?)"
say "a second start ends, and the first goes on"

say "removing it"
$sudo apt-get purge -y -qq "$name" >/dev/null
for file in $files; do
    case $file in
        *oretoken*) [ ! -e "$file" ] || fail "$file was left" ;;
    esac
done
! command -v foretoken >/dev/null || fail "the program was left"
say "nothing was left"
