#!/bin/sh
# Trains a head: run_all.sh TARGET.gguf FOLDER [PROMPTS] [MINUTES]. Existing results are reused.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
model=$1 folder=$2 prompts=${3:-6000} minutes=${4:-120}
python=${PYTHON:-$here/venv/bin/python}
mkdir -p "$folder"
head_data() { (cd "$here" && cargo run --release --locked --quiet --bin head-data -- "$@"); }
model=$(realpath "$model") folder=$(realpath "$folder")
[ -e "$folder/prompts.jsonl" ] || "$python" "$here/prompts.py" --count "$prompts" --out "$folder/prompts.jsonl"
head_data write --model "$model" --prompts "$folder/prompts.jsonl" --texts "$folder/texts.jsonl"
[ -e "$folder/states/texts.json" ] || head_data states --model "$model" --texts "$folder/texts.jsonl" --folder "$folder/states"
train() { "$python" "$here/train.py" --data "$folder/states" --model "$model" "$@"; }
train --out "$folder/head" --minutes "$minutes"
train --out "$folder/rounded" --minutes $((minutes / 4 + 1)) --init "$folder/head/head.pt" --q4-1 --train-output --first 2 --rate 3e-4
"$python" "$here/export.py" --head "$folder/rounded/head.pt" --model "$model" --out "$folder/head.gguf"
