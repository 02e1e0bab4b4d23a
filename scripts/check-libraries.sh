#!/bin/sh
# Refuses programs that search for libraries outside the system and their own folder, where somebody
# else could place some: check-libraries.sh PROGRAM... Only Linux programs name such folders.
set -eu
[ "$(uname)" = Linux ] || exit 0
for program; do
    # A separate command, so that an unreadable program ends the script.
    header=$(readelf -d "$program")
    folders=$(printf '%s\n' "$header" | sed -n 's/.*(R[UNPATH]*) .*\[\(.*\)\]$/\1:/p')
    while [ -n "$folders" ]; do
        folder=${folders%%:*} folders=${folders#*:}
        case "$folder" in
            *..*) ;;
            '$ORIGIN' | '$ORIGIN'/*) continue ;;
        esac
        echo "check-libraries: $program searches for libraries in '$folder': expected \$ORIGIN or folders in it. Link it without that -rpath." >&2
        exit 1
    done
done
