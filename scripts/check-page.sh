#!/bin/sh
# Refuses a page whose files are larger than one megabyte, compressed: check-page.sh DIST. Without the reader of PDF files,
# which is fetched when the first one is attached.
set -eu
most=1000000
size=$(find "$1" -type f ! -name '*pdf*' -exec gzip -9nc {} + | wc -c)
if [ "$size" -gt "$most" ]; then
    echo "check-page: $1 is $size bytes compressed: expected at most $most. 'ls -S $1/assets' shows what is large." >&2
    exit 1
fi
echo "The page is $size bytes compressed, of $most"
