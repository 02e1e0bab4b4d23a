#!/bin/sh
# Refuses programs that look for libraries elsewhere than next to themselves and in the system, where somebody else
# could put some: check-libraries.sh PROGRAM... Only Linux's programs name such folders.
set -eu
[ "$(uname)" = Linux ] || exit 0
for program; do
    # By itself, so that a program that cannot be read ends this.
    header=$(readelf -d "$program")
    folders=$(printf '%s\n' "$header" | sed -n 's/.*(R[UNPATH]*) .*\[\(.*\)\]$/\1:/p')
    while [ -n "$folders" ]; do
        folder=${folders%%:*} folders=${folders#*:}
        case "$folder" in
            *..*) ;;
            '$ORIGIN' | '$ORIGIN'/*) continue ;;
        esac
        echo "check-libraries: $program looks for libraries in '$folder': expected \$ORIGIN or folders in it. Link it without that -rpath." >&2
        exit 1
    done
done
