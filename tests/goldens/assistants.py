#!/usr/bin/env python3
"""Writes assistants.safetensors: scores of Gemma 4's assistants as transformers computes them in 32 bits, which
tests/engine/assistants.rs compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.23.0 safetensors
    cargo run -p foretoken-tests --example write_families -- FOLDER
    venv/bin/python tests/goldens/assistants.py FOLDER

The targets are the folders that Foretoken's tests load. The assistants are made up from names, by the rule of
tests/kit/random_assistant.rs. Of each target `<label> dense` and `<label> clustered`: the scores of three steps after a text,
each fed the text's next token and the state before it, [STEPS, 320]; and of each target `<label> keys`, what its
assistants attend to at every token of the text: keys and values of layers without a window and of those with one,
[TOKENS, numbers].
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4TextConfig

from families import load

from made_up import made_up

VOCABULARY, TOKENS, STEPS = 320, 24, 3
TEXT = [3 + i * 97 % 310 for i in range(TOKENS + STEPS)]
TARGETS = ["gemma4", "gemma4 with experts"]
KINDS = ["full_attention", "sliding_attention"]
HERE = Path(__file__).parent


def modes(config):
    """Which layers see keys of others, and whose are handed over. transformers 5.23.0 refuses layers that all see those of
    others, which an assistant's are, and hands over none of a target in which no layer does."""
    own = config.num_hidden_layers - config.num_kv_shared_layers
    found = [None] * own + ["reuse"] * config.num_kv_shared_layers
    for kind in set(config.layer_types[:own]):
        found[own - 1 - config.layer_types[:own][::-1].index(kind)] = "store"
    return found


Gemma4TextConfig.kv_sharing_modes = property(modes)


def assistant(target, clustered):
    """An assistant for this target with made-up weights."""
    text = Gemma4TextConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=192, num_hidden_layers=4, num_kv_shared_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, global_head_dim=64,
        attention_k_eq_v=target.attention_k_eq_v,
        num_global_key_value_heads=1 if target.attention_k_eq_v else None,
        layer_types=["sliding_attention"] * 3 + ["full_attention"],
        # A layer with a window sees itself as one of its tokens. transformers' mask for a query that has no key counts
        # from the last key, and to the window's width inclusively: two tokens more than layers of the target see.
        sliding_window=target.sliding_window - 2,
        rms_norm_eps=1e-2, rope_parameters=target.rope_parameters, max_position_embeddings=256,
        hidden_size_per_layer_input=0, vocab_size_per_layer_input=0, use_double_wide_mlp=False, enable_moe_block=False,
        tie_word_embeddings=True)
    config = Gemma4AssistantConfig(
        text_config=text, backbone_hidden_size=target.hidden_size, use_ordered_embeddings=clustered, num_centroids=20,
        centroid_intermediate_top_k=5)
    config._attn_implementation = "eager"
    model = Gemma4AssistantForCausalLM(config).float().eval()
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    with torch.no_grad():
        for name, tensor in tensors.items():
            if name.endswith("token_ordering"):
                tensor.copy_(torch.tensor([(i * 97 + 13) % VOCABULARY for i in range(VOCABULARY)]))
            elif name.endswith((".weight", ".layer_scalar")):
                numbers = torch.from_numpy(made_up(name, tensor.numel()))
                centre, most = (0.2, 0.07) if "q_norm" in name else (1, 0.3) if tensor.ndim == 1 else (0, 0.09)
                tensor.copy_((centre + most * numbers).view(tensor.shape))
    return model


def main():
    goldens = {}
    for label in TARGETS:
        target = load(Path(sys.argv[1]) / f"{label} F32").eval()
        embed = target.get_input_embeddings()
        with torch.no_grad():
            ran = target(
                torch.tensor([TEXT[:TOKENS]]), output_hidden_states=True, return_shared_kv_states=True, use_cache=False)
            shared = {kind: ran.shared_kv_states[kind] for kind in KINDS}
            keys = [part[0].transpose(0, 1).flatten(1) for kind in KINDS for part in shared[kind]]
            goldens[f"{label} keys"] = torch.cat(keys, 1).contiguous()
            for clustered in [False, True]:
                model, state, rows = assistant(target.config, clustered), ran.hidden_states[-1][:, -1:], []
                for token in TEXT[TOKENS:]:
                    inputs = torch.cat([embed(torch.tensor([[token]])), state], -1)
                    out = model(
                        inputs_embeds=inputs, position_ids=torch.tensor([[TOKENS]]), shared_kv_states=shared,
                        attention_mask=torch.ones(1, TOKENS + 1, dtype=torch.long))
                    state = out.last_hidden_state
                    rows.append(out.logits[0, 0])
                name = f"{label} {'clustered' if clustered else 'dense'}"
                goldens[name] = torch.stack(rows)
                print(f"{name}: scores {goldens[name].std().item():.2f} around their mean, best {[int(r.argmax()) for r in rows]}")
    save_file(goldens, HERE / "assistants.safetensors")


if __name__ == "__main__":
    main()
