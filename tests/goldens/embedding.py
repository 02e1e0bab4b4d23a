#!/usr/bin/env python3
"""Writes embedding.safetensors: what transformers makes of tokens with the embedding models of tests/kit/random_embedder.rs,
in 32 bits, which tests/engine/embeddings.rs compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.24.0 safetensors
    cargo run -p foretoken-tests --example write_embedders -- FOLDER
    venv/bin/python tests/goldens/embedding.py FOLDER

For each model: the tokens of its texts, and their embeddings.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel, PreTrainedTokenizerFast

HERE = Path(__file__).parent
TEXTS = ["the fox runs", "hens sleep; the fox does not", "the " + "fox runs and sleeps " * 20]


def embeddings(folder):
    config = json.loads((folder / "config.json").read_text())
    pooling = json.loads((folder / "1_Pooling/config.json").read_text())
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    found = {}
    for number, text in enumerate(TEXTS):
        tokens = tokenizer(text)["input_ids"]
        with torch.no_grad():
            states = model(input_ids=torch.tensor([tokens])).last_hidden_state[0]
        pooled = states[0] if pooling["pooling_mode_cls_token"] else states.mean(0)
        found[f"{config['model_type']} {number} tokens"] = torch.tensor(tokens)
        found[f"{config['model_type']} {number}"] = torch.nn.functional.normalize(pooled, dim=0)
    return found


goldens = {}
for folder in sorted(Path(sys.argv[1]).iterdir()):
    goldens.update(embeddings(folder))
save_file(goldens, HERE / "embedding.safetensors")
print(f"{len(goldens)} tensors")
