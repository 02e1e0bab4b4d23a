#!/bin/sh
# Installs a Debian package of Foretoken on this computer over an older version, chats with both on
# a display of their own, runs the terminal program, removes the package, and checks for leftovers.
# Does nothing if Foretoken is installed already.
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
folder=$(mktemp -d)
installed=
purge() { $sudo apt-get purge -y -qq "$name" >/dev/null 2>&1; }
trap '[ -z "$installed" ] || purge; rm -rf "$folder"' EXIT

# The package has no maintainer address yet.
say "running lintian"
lintian --fail-on error --suppress-tags malformed-contact "$package" || fail "lintian found errors"
contents=$folder/contents
dpkg-deb --raw-extract "$package" "$contents"
desktop-file-validate "$contents"/usr/share/applications/*.desktop
# Newer versions report the missing maintainer address; older ones do not know the option.
about=$(echo "$contents"/usr/share/metainfo/*.xml)
appstreamcli validate --no-net "$about" ||
    appstreamcli validate --no-net --override=url-homepage-missing=info "$about"
for program in foretoken foretoken-cli; do
    man --warnings -l "$contents/usr/share/man/man1/$program.1.gz" >/dev/null || fail "$program has no manual page"
done
[ ! -e "$contents/usr/bin/foretoken-bench" ] || fail "a program for developers is in the package"
size=$(stat -c %s "$package")
limit=45000000
[ ! -e "$contents/usr/lib/Foretoken/smollm2" ] || limit=150000000
[ "$size" -lt "$limit" ] || fail "the package has $size bytes, more than $limit"

# An older version: the same contents with a lower version number.
older=$folder/older.deb
sed -i 's/^Version: .*/Version: 0.0.1/' "$contents/DEBIAN/control"
dpkg-deb --root-owner-group -Znone --build "$contents" "$older" >/dev/null
rm -rf "$contents"

install() {
    installed=yes
    say "installing $(dpkg-deb --show --showformat '${Package} ${Version}' "$1")"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

# A home folder with a path of 240 bytes, including spaces and umlauts.
home="$folder/Jörg Größe, Äpfel und Öl"
while [ "$(printf %s "$home" | wc -c)" -lt 239 ]; do home="${home}n"; done
home="${home}e"
mkdir "$home"
export HOME="$home"
data="$home/my data"
chat() { FORETOKEN_APPLICATION=/usr/bin/foretoken "${CARGO_TARGET_DIR:-target}/debug/examples/installed" "$data" "$1"; }

install "$older"
chat 0
install "$package"
chat 1
files=$(dpkg-query --listfiles "$name")

# The desktop knows which program opens a model file.
model="$home/a model.gguf"
cp starter/starter-draft-Q8_0.gguf "$model"
kind=$(gio info -a standard::content-type "$model" | sed -n 's/.*content-type: //p')
[ "$kind" = application/x-gguf ] || fail "a model file has the type $kind"
program=$(xdg-mime query default "$kind")
[ "$program" = Foretoken.desktop ] || fail "a model file is opened by '$program'"
say "a model file has the type $kind and is opened by $program"

# on_display COMMAND...: runs a command with a display and a session bus of its own.
on_display() { xvfb-run --auto-servernum dbus-run-session -- "$@" 2>/dev/null; }

# A second start passes its file to the first and ends.
FORETOKEN_DATA_DIR=$data on_display sh -c '
    foretoken & first=$!
    sleep 8
    timeout 20 foretoken "$1" || exit 1
    sleep 4
    kill "$first" 2>/dev/null || exit 2
' sh "$model" || fail "the second start did not end, or the first did ($?)"
say "the second start ends, and the first keeps running"

# If the data folder is read-only, a message box says so and waits.
FORETOKEN_DATA_DIR=/sys/foretoken on_display sh -c '
    foretoken & first=$!
    sleep 8
    xwininfo -root -tree | grep -q "\"Foretoken cannot start\"" || exit 1
    kill "$first" 2>/dev/null || exit 2
' || fail "no message says that the data folder is read-only ($?)"
say "a read-only data folder is reported"

foretoken-cli check --target starter --draft starter-draft --prompt "Tell me a story" --max-tokens 32 ||
    fail "the terminal program does not reply, or not identically with drafts"

say "removing it"
purge
installed=
for file in $files; do
    case $file in
        *oretoken*) [ ! -e "$file" ] || fail "$file was not removed" ;;
    esac
done
! command -v foretoken foretoken-cli >/dev/null || fail "a program was not removed"
[ -s "$data/foretoken.db" ] || fail "the conversations were removed"
say "everything was removed except the conversations"
