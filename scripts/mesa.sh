#!/bin/sh
# mesa.sh COMMAND [ARGUMENT...]: runs a program with the Vulkan drivers of Debian 13 (Mesa 25.0) instead of this
# system's. They and their libraries are downloaded once into .tools/mesa, on systems with apt-get on x86-64; nothing is
# installed. MESA_DRIVER chooses a driver, lavapipe (lvp) by default, the software renderer; AMD's is radeon.
set -eu
repository=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder="$repository/.tools/mesa"
root="$folder/root"
libraries="$root/usr/lib/x86_64-linux-gnu"

fail() { echo "mesa.sh: $*" >&2; exit 1; }

fetch() {
    command -v apt-get >/dev/null || fail "apt-get is missing: it downloads Debian's packages"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -f "$keys" ] || fail "$keys is missing: install debian-archive-keyring"
    echo "Downloading Mesa 25.0 from Debian 13 (57 MB)" >&2
    rm -rf "$folder"
    mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial" "$folder/unpacked"
    : >"$folder/status"
    echo "deb [signed-by=$keys] http://deb.debian.org/debian trixie main" >"$folder/sources.list"
    # An apt of its own, for which nothing is installed: it downloads all libraries.
    apt() {
        apt-get -qq -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" \
            -o Dir::Cache="$folder/cache" -o Dir::Etc::SourceList="$folder/sources.list" \
            -o Dir::Etc::SourceParts=/nonexistent -o APT::Architecture=amd64 -o APT::Sandbox::User="$(id -un)" \
            -o Debug::NoLocking=true "$@"
    }
    apt update
    apt install --download-only --yes --no-install-recommends mesa-vulkan-drivers libvulkan1 >&2
    for package in "$folder"/cache/archives/*.deb; do dpkg -x "$package" "$folder/unpacked"; done
    rm -rf "$folder/cache" "$folder/state"
    mv "$folder/unpacked" "$root"
}

[ "$(uname -sm)" = "Linux x86_64" ] || fail "these drivers are for Linux on x86-64"
[ -d "$root" ] || fetch
[ $# -gt 0 ] || exit 0
export VK_DRIVER_FILES="$root/usr/share/vulkan/icd.d/${MESA_DRIVER:-lvp}_icd.json"
# The libraries need the C library and the dynamic linker that they were built with.
exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries" "$@"
