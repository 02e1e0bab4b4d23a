#!/bin/sh
# Refuses a page of more than one megabyte compressed: check-page.sh DIST. The PDF reader and its
# decoder of JPEG 2000 do not count, because they are loaded with the first PDF file, nor does the
# player, which is loaded in a browser without the shell.
set -eu
most=1000000
size=$(find "$1" -type f ! -name '*pdf*' ! -name 'openjpeg*' ! -name 'player*' -exec gzip -9nc {} + | wc -c)
if [ "$size" -gt "$most" ]; then
    echo "check-page: $1 is $size bytes compressed: expected at most $most. 'ls -S $1/assets' shows what is large." >&2
    exit 1
fi
echo "The page is $size bytes compressed, of $most"
