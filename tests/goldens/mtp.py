#!/usr/bin/env python3
"""Writes mtp.safetensors: rows of a Qwen3.5's block for MTP in 32 bits, which tests/mtp.rs compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.23.0 safetensors
    cargo run -p foretoken-tests --example write_mtp -- FOLDER
    venv/bin/python tests/goldens/mtp.py FOLDER

transformers runs the model, and its layer is the block's; it leaves the block itself out, so that what is around the
layer is written here, as DeepSeek-AI 2024 has it: the token's embedding and the model's state after its final norm at
the token before, each normed, are joined by a matrix, and the output matrix multiplies what comes out, normed. `rows`
are the scores after every token of a text but the first, [23, 320]; `steps` those of three further steps at row CHAIN,
each fed the text's next token and what the block gave itself, [3, 320].
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5DecoderLayer

TOKENS = torch.tensor([3 + i * 97 % 310 for i in range(24)])
CHAIN, STEPS = 9, 3
HERE = Path(__file__).parent


class Block:
    def __init__(self, model, weights):
        self.model, self.weights = model.model, weights
        self.output = model.lm_head
        config = model.config
        self.epsilon = config.rms_norm_eps
        self.layer = Qwen3_5DecoderLayer(config, config.layer_types.index("full_attention")).eval()
        prefix = "mtp.layers.0."
        own = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
        self.layer.load_state_dict(own, strict=True)

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * (1 + self.weights[f"mtp.{name}.weight"])

    def states(self, tokens, states):
        """What it gives for pairs of a token and the state before it."""
        embedding = self.norm(self.model.embed_tokens(tokens), "pre_fc_norm_embedding")
        both = torch.cat([embedding, self.norm(states, "pre_fc_norm_hidden")], -1)
        x = (both @ self.weights["mtp.fc.weight"].T)[None]
        rows = x.shape[1]
        positions = torch.arange(rows)[None]
        turned = self.model.rotary_emb(x, positions)
        mask = torch.full((rows, rows), float("-inf")).triu(1)[None, None]
        return self.norm(self.layer(x, position_embeddings=turned, attention_mask=mask)[0], "norm")


def main():
    (folder,) = Path(sys.argv[1]).iterdir()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        block = Block(model, load_file(folder / "model.safetensors"))
        states = model.model(TOKENS[None], use_cache=False).last_hidden_state[0]
        assert torch.allclose(model(TOKENS[None], use_cache=False).logits[0], model.lm_head(states), atol=1e-5)
        rows = model.lm_head(block.states(TOKENS[1:], states[:-1]))
        fed, steps = states[: CHAIN + 1], []
        own = block.states(TOKENS[1 : CHAIN + 2], fed)[-1:]
        for step in range(STEPS):
            fed = torch.cat([fed, own])
            own = block.states(TOKENS[1 : CHAIN + 3 + step], fed)[-1:]
            steps.append(model.lm_head(own)[0])
    goldens = {"rows": rows.contiguous(), "steps": torch.stack(steps)}
    for name, numbers in goldens.items():
        print(f"{name}: up to {numbers.abs().max().item():.2f}, {numbers.std().item():.2f} around their mean")
    save_file(goldens, HERE / "mtp.safetensors")


if __name__ == "__main__":
    main()
