#!/bin/sh
# Runs the Windows installer silently, checks the installed files, starts the program, installs it
# again over itself, and removes it: under Wine, or on Windows in Git's shell. Does nothing if
# Foretoken is installed already.
#
#   scripts/windows/test-package.sh SETUP.exe
set -eu
cd "$(dirname "$0")/../.."
export MSYS_NO_PATHCONV=1 # options of Windows are no paths

say() { echo "test-windows-package: $*" >&2; }
fail() { say "$*"; exit 1; }

UNINSTALL='HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\dev.foretoken'
CLASSES='HKCU\Software\Classes'

wine=
[ "$(uname)" != Linux ] || wine=scripts/windows/wine.sh
# windows PROGRAM [ARGUMENT...]: runs a Windows program.
windows() { $wine "$@"; }
# named NAME: prints the folder in a Windows variable; place NAME: prints it in this shell's form.
named() { windows cmd /c "echo %$1%" | tr -d '\r'; }
place() {
    if [ -n "$wine" ]; then windows winepath -u "$(named "$1")"; else cygpath -u "$(named "$1")"; fi | tr -d '\r'
}
has_key() { windows reg query "$1" >/dev/null 2>&1; }
lacks_key() { ! has_key "$1"; }
# value KEY NAME: prints a value of the registry.
value() { windows reg query "$1" /v "$2" | tr -d '\r' | sed -n "s/^ *$2 *REG_[A-Z]* *//p"; }
# wait_for COMMAND...: waits up to half a minute.
wait_for() {
    for _ in $(seq 60); do
        ! "$@" || return 0
        sleep 0.5
    done
    return 1
}

[ $# = 1 ] || fail "expected one installer, found $#"
setup=$1
local=$(place LOCALAPPDATA)
folder=$local/Programs/Foretoken
menu="$(place APPDATA)/Microsoft/Windows/Start Menu/Programs/Foretoken.lnk"
data=$(mktemp -d)
! has_key "$UNINSTALL" || fail "Foretoken is installed. Remove it first, then run this again."

install() { windows "$setup" /S "$@"; }
uninstall() {
    windows "$folder/uninstall.exe" /S "$@"
    # The uninstaller continues in a copy of itself.
    wait_for test ! -e "$folder/uninstall.exe" || fail "the uninstaller was not removed"
}

say "installing $(basename "$setup"), $(($(wc -c < "$setup") / 1000000)) MB"
install || fail "the installer ended with $?"
for file in foretoken.exe foretoken-cli.exe WebView2Loader.dll uninstall.exe LICENSE-MIT starter/starter-target-Q8_0.gguf \
    starter/starter-draft-Q8_0.gguf; do
    [ -s "$folder/$file" ] || fail "$file is missing"
done
[ -s "$menu" ] || fail "the Start menu entry is missing"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
[ "$(value "$UNINSTALL" DisplayVersion)" = "$version" ] || fail "Windows does not show version $version"
has_key "$CLASSES\\dev.foretoken.gguf\\shell\\open\\command" || fail "no program opens model files"

say "running the terminal program"
for pair in "starter --draft starter-draft" "smollm2 --draft smollm2-head"; do
    # shellcheck disable=SC2086 # an option with its value
    windows "$folder/foretoken-cli.exe" check --target $pair --prompt "Tell me a story" --max-tokens 40 ||
        fail "the text of ${pair%% *} differs with drafts"
done

say "starting it"
mkdir -p "$local/dev.foretoken/data" && echo kept > "$local/dev.foretoken/data/kept"
if [ -n "$wine" ]; then FORETOKEN_DATA_DIR="Z:$data"; else FORETOKEN_DATA_DIR=$(cygpath -w "$data"); fi
export FORETOKEN_DATA_DIR
windows "$folder/foretoken.exe" &
started=$!
if [ -n "$wine" ]; then
    # WebView2 is missing, which the log says.
    says() { grep -qs "the start failed: WebView2 is missing.*https://developer.microsoft.com" "$data"/logs/*.log; }
    wait_for says || fail "the log does not say that WebView2 is missing"
    say "$(sed -n 's/.*the start failed: //p' "$data"/logs/*.log)"
else
    sleep 15
fi
kill -0 "$started" || fail "the program ended"

say "installing over it while it runs, and after"
code=0 && install || code=$?
[ "$code" = 2 ] || fail "the installer ended with $code while the program runs, expected 2"
[ -s "$folder/foretoken.exe" ] || fail "the running program was removed"
windows taskkill /f /im foretoken.exe >/dev/null
wait "$started" || true
rm -rf "$folder/smollm2"
install || fail "the installer ended with $?"
[ ! -e "$folder/smollm2" ] || fail "a deselected model was installed"
# A folder is in the way of a file.
mkdir -p "$local/barred/LICENSE-MIT"
code=0 && install "/D=$(named LOCALAPPDATA)\\barred" || code=$?
rm -rf "$local/barred"
[ "$code" = 3 ] || fail "the installer ended with $code where it cannot write, expected 3"

say "removing it"
uninstall
for left in "$folder" "$menu"; do
    wait_for test ! -e "$left" || fail "$left was not removed"
done
for key in "$UNINSTALL" "$CLASSES\\dev.foretoken.gguf" "$CLASSES\\.gguf"; do
    wait_for lacks_key "$key" || fail "$key was not removed"
done
[ -e "$local/dev.foretoken/data/kept" ] || fail "the conversations were removed"
install
uninstall /CONVERSATIONS
wait_for test ! -e "$local/dev.foretoken" || fail "the conversations were not removed on request"
rm -rf "$data"
say "everything was removed; conversations stay unless their removal is requested"
