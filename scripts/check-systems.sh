#!/bin/sh
# Compiles the whole workspace, including tests, for the other systems and runs clippy without
# warnings. Links and runs nothing.
#
#   scripts/check-systems.sh [TARGET...]     all of them if none is named
#   scripts/check-systems.sh --list          which there are
#
# zig compiles C and C++, because it contains the headers of all systems (scripts/setup.sh systems).
set -eu
cd "$(dirname "$0")/.."

ALL="aarch64-apple-darwin x86_64-pc-windows-gnu aarch64-unknown-linux-gnu"
# The Linux window finds its libraries by pkg-config; without linking, this computer's will do.
export PKG_CONFIG_ALLOW_CROSS=1

# zig_name TARGET: zig's name of the target.
zig_name() {
    case $1 in
        aarch64-apple-darwin) echo aarch64-macos ;;
        x86_64-pc-windows-gnu) echo x86_64-windows-gnu ;;
        aarch64-unknown-linux-gnu) echo aarch64-linux-gnu ;;
        *) echo "check-systems: expected one of $ALL, found '$1'" >&2 && return 1 ;;
    esac
}

# compiler TARGET ZIG_NAME PROGRAM: writes a compiler for the target that drops options zig does not
# accept.
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
