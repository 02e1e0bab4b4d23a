#!/usr/bin/env python3
"""Writes heads.safetensors: rows of draft heads as speculators 0.9 computes them, which tests/engine/heads.rs compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.23.0 safetensors speculators==0.9.0
    venv/bin/python tests/goldens/heads.py

The heads and the states they read are made up from names, by the rule of tests/kit/random_head.rs. A head fuses three
states of its target where its kind does not name another number. For each kind of head
`<kind>`: the scores after every token of a text but the first, [23, 107], and `<kind> steps`: those of three further
steps at row CHAIN, each fed the text's next token and the state before it, [3, 107].
"""
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from transformers import LlamaConfig, Qwen3Config

from made_up import made_up

HIDDEN, VOCABULARY, TOKENS, CHAIN, STEPS = 256, 320, 24, 9, 4
HERE = Path(__file__).parent
KINDS = {
    "plain": {},
    "norm_before_residual": {"norm_before_residual": True},
    "norm_before_fc": {"norm_before_fc": True},
    "fc_norm norm_output": {"fc_norm": True, "norm_output": True},
    "head_norms norm_before_residual": {"head_norms": True, "norm_before_residual": True},
    "fc_norm 1 states": {"fc_norm": True, "states": 1},
    "fc_norm norm_output 5 states": {"fc_norm": True, "norm_output": True, "states": 5},
    "norm_before_fc norm_output 5 states": {"norm_before_fc": True, "norm_output": True, "states": 5},
}


def head(flags):
    """A head of this kind with made-up weights; what EAGLE's authors call midlayer is layers.0 here."""
    flags = dict(flags)
    head_norms = flags.pop("head_norms", False)
    entering = list(range(flags.pop("states", 3)))
    block = (Qwen3Config if head_norms else LlamaConfig)(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=352, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, rms_norm_eps=1e-5, max_position_embeddings=512,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, attn_implementation="eager")
    guessed = [token for token in range(VOCABULARY) if token % 3 == 2]
    config = Eagle3SpeculatorConfig(
        transformer_layer_config=block, draft_vocab_size=len(guessed), eagle_aux_hidden_state_layer_ids=entering,
        **flags)
    model = Eagle3DraftModel(config).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.startswith("verifier"):
                continue
            numbers = torch.from_numpy(made_up(name.replace("layers.0.", "midlayer."), parameter.numel()))
            numbers = 1 + 0.3 * numbers if parameter.ndim == 1 else 0.09 * numbers
            parameter.copy_(numbers.view(parameter.shape))
    return model


def main():
    tokens = torch.tensor([[3 + i * 97 % 310 for i in range(TOKENS)]])
    goldens = {}
    for kind, flags in KINDS.items():
        model, steps = head(flags), []
        width = flags.get("states", 3) * HIDDEN
        states = torch.from_numpy(made_up("states", TOKENS * width)).view(1, TOKENS, width)
        model.lm_head.register_forward_hook(lambda _module, _input, output: steps.append(output[0].numpy()))
        with torch.no_grad():
            model(states[:, :-1], tokens[:, 1:], torch.zeros(1, TOKENS - 1, dtype=torch.long), ttt_steps=STEPS)
        goldens[kind] = steps[0]
        goldens[f"{kind} steps"] = np.stack([step[CHAIN] for step in steps[1:]])
    save_file(goldens, HERE / "heads.safetensors")


if __name__ == "__main__":
    main()
