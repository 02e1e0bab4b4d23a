#!/usr/bin/env python3
"""Writes families.safetensors: logits of the families of tests/kit/random_family/recent.rs as transformers computes them in
32 bits, which tests/engine/goldens.rs compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.23.0 safetensors
    cargo run -p foretoken-tests --example write_families -- FOLDER
    venv/bin/python tests/goldens/families.py FOLDER

transformers loads the folders that Foretoken's tests load. Of each family the logits of some positions of a text of 40
tokens, [POSITIONS, 320], run whole; run token by token they have to be the same. LongRoPE reads texts up to the
original context otherwise than longer ones, so of it each position ends a text of its own.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, MuseGlimmerConfig, MuseGlimmerForConditionalGeneration

TOKENS = [3 + i * 97 % 310 for i in range(40)]
# Around the window's width, the original context and its multiples.
POSITIONS = [0, 1, 7, 8, 9, 14, 15, 16, 17, 24, 31, 32, 33, 39]
HERE = Path(__file__).parent


def muse(folder, config):
    """The model of language within one that sees, whose eyes are as small as can be."""
    eyes = {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "pos_emb_height": 4, "pos_emb_width": 4,
    }
    text = {key: value for key, value in config.items() if key != "architectures"}
    whole = MuseGlimmerConfig(text_config=text, vision_config=eyes, out_hidden_size=64, projector_hidden_size=16)
    whole._attn_implementation = "eager"
    model = MuseGlimmerForConditionalGeneration(whole)
    named = lambda name: name.replace("model.", "model.language_model.", 1)
    weights = {named(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected, unexpected
    assert all("vision" in name for name in missing), missing
    return model.float()


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] == "muse_glimmer_text":
        return muse(folder, config)
    model, told = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    problems = [told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")]
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    assert not set().union(*map(set, problems)) - tied, problems
    return model


def whole(model, tokens):
    return model(torch.tensor([tokens]), use_cache=False).logits[0]


def by_tokens(model, tokens):
    cache, rows = None, []
    for token in tokens:
        out = model(torch.tensor([[token]]), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        rows.append(out.logits[0, 0])
    return torch.stack(rows)


def main():
    goldens = {}
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        label = folder.name.rsplit(" ", 1)[0]
        model = load(folder).eval()
        with torch.no_grad():
            if "two lists" in label:
                rows = torch.stack([whole(model, TOKENS[: place + 1])[-1] for place in POSITIONS])
            else:
                rows, other = whole(model, TOKENS), by_tokens(model, TOKENS)
                difference = ((rows - other).norm() / rows.norm()).item()
                assert difference < 3e-5, (label, difference)
                rows = rows[POSITIONS]
        goldens[label] = rows.contiguous()
        print(f"{label}: logits up to {rows.abs().max().item():.2f}, {rows.std().item():.2f} around their mean")
    save_file(goldens, HERE / "families.safetensors")


if __name__ == "__main__":
    main()
