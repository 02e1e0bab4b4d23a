#!/usr/bin/env python3
"""Writes mtp.safetensors: rows of the blocks for MTP of a Qwen3.5 and of a GLM-4.7-Flash in 32 bits, which tests/engine/mtp.rs
compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.23.0 safetensors
    cargo run -p foretoken-tests --example write_mtp -- FOLDER
    venv/bin/python tests/goldens/mtp.py FOLDER

transformers runs the models, and their layers are the blocks'; it leaves the blocks themselves out, so that what is
around the layer is written here, as DeepSeek-AI 2024 has it: the token's embedding and the model's state after its
final norm at the token before, each normed, are joined by a matrix, and the output matrix multiplies what comes out,
normed. `rows` are the scores after every token of a text but the first, [23, 320]; `steps` those of three further steps
at row CHAIN, each fed the text's next token and what the block gave itself, [3, 320].
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5DecoderLayer

TOKENS = torch.tensor([3 + i * 97 % 310 for i in range(24)])
CHAIN, STEPS = 9, 3
HERE = Path(__file__).parent


class Block:
    """Names: of the matrix that joins, of the norms of embeddings, of states, and of what comes out."""

    def __init__(self, model, layer, weights, names, added):
        self.model, self.layer, self.added = model, layer, added
        self.joining, *self.norms = (weights[f"{name}.weight"] for name in names)
        self.epsilon = model.config.rms_norm_eps

    def norm(self, x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * (self.added + weight)

    def states(self, tokens, states):
        """What it gives for pairs of a token and the state before it."""
        of_embedding, of_states, of_output = self.norms
        embedding = self.norm(self.model.model.embed_tokens(tokens), of_embedding)
        x = (torch.cat([embedding, self.norm(states, of_states)], -1) @ self.joining.T)[None]
        rows = x.shape[1]
        turned = self.model.model.rotary_emb(x, torch.arange(rows)[None])
        mask = torch.full((rows, rows), float("-inf")).triu(1)[None, None]
        return self.norm(self.layer(x, position_embeddings=turned, attention_mask=mask)[0], of_output)


def load(folder, config=None):
    return AutoModelForCausalLM.from_pretrained(
        folder, config=config, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def qwen35(folder, weights):
    """Norms of this family are written less one."""
    model = load(folder)
    layer = Qwen3_5DecoderLayer(model.config, model.config.layer_types.index("full_attention")).eval()
    prefix = "mtp.layers.0."
    own = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
    layer.load_state_dict(own, strict=True)
    names = ["fc", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"]
    return Block(model, layer, weights, [f"mtp.{name}" for name in names], 1)


def glm(folder, weights):
    """Its block is called the layer after the last one: a model with one more has it."""
    longer = AutoConfig.from_pretrained(folder)
    layers = longer.num_hidden_layers
    longer.num_hidden_layers, longer.mlp_layer_types = layers + 1, [*longer.mlp_layer_types, "sparse"]
    layer = load(folder, longer).model.layers[layers]
    names = ["eh_proj", "enorm", "hnorm", "shared_head.norm"]
    return Block(load(folder), layer, weights, [f"model.layers.{layers}.{name}" for name in names], 0)


def goldens_of(block):
    model = block.model
    states = model.model(TOKENS[None], use_cache=False).last_hidden_state[0]
    assert torch.allclose(model(TOKENS[None], use_cache=False).logits[0], model.lm_head(states), atol=1e-5)
    rows = model.lm_head(block.states(TOKENS[1:], states[:-1]))
    fed, steps = states[: CHAIN + 1], []
    own = block.states(TOKENS[1 : CHAIN + 2], fed)[-1:]
    for step in range(STEPS):
        fed = torch.cat([fed, own])
        own = block.states(TOKENS[1 : CHAIN + 3 + step], fed)[-1:]
        steps.append(model.lm_head(own)[0])
    return {"rows": rows.contiguous(), "steps": torch.stack(steps)}


def main():
    goldens = {}
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        make = glm if json.loads((folder / "config.json").read_text())["model_type"] == "glm4_moe_lite" else qwen35
        with torch.no_grad():
            made = goldens_of(make(folder, load_file(folder / "model.safetensors")))
        goldens |= {f"{make.__name__}.{name}": numbers for name, numbers in made.items()}
    for name, numbers in goldens.items():
        print(f"{name}: up to {numbers.abs().max().item():.2f}, {numbers.std().item():.2f} around their mean")
    save_file(goldens, HERE / "mtp.safetensors")


if __name__ == "__main__":
    main()
