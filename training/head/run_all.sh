#!/bin/sh
# Trains a head: run_all.sh TARGET.gguf FOLDER [MINUTES]. Existing results are reused.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
model=$(realpath "$1") minutes=${3:-60}
python=${PYTHON:-$here/venv/bin/python}
mkdir -p "$2" && cd "$2"
[ -e prompts.jsonl ] || "$python" "$here/prompts.py" --out prompts.jsonl
[ -e conversations.npz ] || "$python" "$here/converse.py" --model "$model" --prompts prompts.jsonl --out conversations.npz --minutes $((minutes / 4 + 1))
"$python" "$here/train.py" --data conversations.npz --model "$model" --out head --minutes "$minutes"
"$python" "$here/export.py" --head head/head.pt --model "$model" --out head.gguf
