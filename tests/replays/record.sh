#!/usr/bin/env bash
# Records the sets of this folder again: record.sh MODELS
#
# MODELS is a folder with SmolLM2-135M-Instruct-Q4_1.gguf and Qwen2.5-Coder's 0.5B and 1.5B Instruct
# in Q4_K_M. BENCH is the program to run [default: cargo run of foretoken-bench].
set -euo pipefail
models=$(cd "${1:?usage: record.sh MODELS}" && pwd)
cd "$(dirname "$0")/../.."
read -ra bench <<< "${BENCH:-cargo run --release --locked --quiet -p foretoken-bench --}"

smollm2=$models/SmolLM2-135M-Instruct-Q4_1.gguf
half=$models/Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf
large=$models/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf
greedy=(--temperature 0 --repeat-penalty 1)
warm=(--seed 7 --repeat-penalty 1)
window=(--seed 7)

record() { # SET TARGET DRAFT TOKENS OPTION...
  local set=$1 target=$2 draft=$3 tokens=$4; shift 4
  "${bench[@]}" record --target "$target" --draft "$draft" --tokens "$tokens" \
    --prompts tests/replays/prompts.jsonl --out "tests/replays/$set.jsonl.gz" "$@"
}
record smollm2-head-greedy "$smollm2" smollm2/smollm2-head.gguf 96 "${greedy[@]}"
record smollm2-head-warm "$smollm2" smollm2/smollm2-head.gguf 96 "${warm[@]}"
record smollm2-head-window "$smollm2" smollm2/smollm2-head.gguf 96 "${window[@]}"
record qwen-1.5b-smollm2-greedy "$large" "$smollm2" 64 "${greedy[@]}"
record qwen-1.5b-0.5b-greedy "$large" "$half" 64 "${greedy[@]}"
record qwen-1.5b-0.5b-window "$large" "$half" 64 "${window[@]}"
