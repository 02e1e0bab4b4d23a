#!/bin/sh
# Compiles the whole workspace, tests included, for the other systems and checks it with clippy: no warning may come
# of it. Links and runs nothing.
#
#   scripts/check-systems.sh [TARGET...]     all of them if none is named
#   scripts/check-systems.sh --list          which there are
#
# C and C++ are compiled by zig, which brings the headers of all three (scripts/setup.sh systems).
set -eu
cd "$(dirname "$0")/.."

ALL="aarch64-apple-darwin x86_64-pc-windows-gnu aarch64-unknown-linux-gnu"
# The window of Linux finds its libraries by pkg-config; where nothing is linked, those of this computer will do.
export PKG_CONFIG_ALLOW_CROSS=1

# zig_name TARGET: what zig calls it.
zig_name() {
    case $1 in
        aarch64-apple-darwin) echo aarch64-macos ;;
        x86_64-pc-windows-gnu) echo x86_64-windows-gnu ;;
        aarch64-unknown-linux-gnu) echo aarch64-linux-gnu ;;
        *) echo "check-systems: expected one of $ALL, found '$1'" >&2 && return 1 ;;
    esac
}

# compiler TARGET ZIG_NAME PROGRAM: a program that compiles for it, without the options that zig does not take.
compiler() {
    mkdir -p .tools/cross
    cat > ".tools/cross/$1-$3" <<EOF
#!/bin/sh
left=\$#
while [ \$left -gt 0 ]; do
    case \$1 in
        -arch) shift && left=\$((left - 1)) ;;
        --target=* | -mmacosx-version-min=*) ;;
        *) set -- "\$@" "\$1" ;;
    esac
    shift && left=\$((left - 1))
done
exec "$PWD/.tools/zig/ziglang/zig" $3 -target $2 "\$@"
EOF
    chmod +x ".tools/cross/$1-$3"
    echo "$PWD/.tools/cross/$1-$3"
}

check() {
    name=$(zig_name "$1")
    variable=$(echo "$1" | tr - _)
    cc=$(compiler "$1" "$name" cc) && cxx=$(compiler "$1" "$name" c++)
    features=
    [ "$1" = aarch64-apple-darwin ] && features=metal
    echo "Checking for $1${features:+ with $features}"
    env "CC_$variable=$cc" "CXX_$variable=$cxx" "AR_$variable=ar" \
        cargo clippy --workspace --locked --all-targets ${features:+--features "$features"} --target "$1" -- -D warnings
}

[ "${1-}" != --list ] || { echo "$ALL" && exit; }
for target in ${@:-$ALL}; do
    check "$target"
done
