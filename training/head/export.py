#!/usr/bin/env python3
"""Write a trained head as a GGUF file, as llama.cpp's converter does (architecture eagle3).

    python export.py --head runs/head/head.pt --model smollm2.gguf --out smollm2-head.gguf

The embedding is the target's and is not written.
"""
import argparse
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type, GGUFWriter
from gguf.quants import quantize
from target import Target
from train import MATRICES, VECTORS


def interleaved(weight, heads):
    """Query or key rows with rotated pairs interleaved, as in GGUF files."""
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head", required=True)
    parser.add_argument("--model", required=True, help="the target")
    parser.add_argument("--out", required=True)
    parser.add_argument("--name", default="SmolLM2 135M Instruct head")
    parser.add_argument("--blocks", default="Q4_1", help="format of the block and of fc")
    parser.add_argument("--output", default="Q4_1", help="format of the output matrix")
    arguments = parser.parse_args()
    saved, target = torch.load(arguments.head, map_location="cpu"), Target(arguments.model)
    head, guessed = saved["head"], saved["guessed"]
    writer = GGUFWriter(arguments.out, "eagle3")
    writer.add_name(arguments.name)
    writer.add_license("apache-2.0")
    writer.add_block_count(1)
    writer.add_context_length(target.context)
    writer.add_embedding_length(target.hidden)
    writer.add_feed_forward_length(target.ffn)
    writer.add_head_count(target.heads)
    writer.add_head_count_kv(target.kv_heads)
    writer.add_layer_norm_rms_eps(target.epsilon)
    writer.add_rope_freq_base(target.rope_base)
    writer.add_vocab_size(target.vocabulary)
    writer.add_array("eagle3.target_layers", saved["layers"])
    writer.add_uint32("eagle3.target_hidden_size", target.hidden)
    writer.add_bool("eagle3.norm_before_residual", False)
    writer.add_bool("eagle3.norm_before_fc", False)
    for own, name in VECTORS.items():
        writer.add_tensor(f"{name}.weight", head[f"{own}.weight"].float().numpy())
    for own, name in MATRICES.items():
        weight = head[f"{own}.weight"].float()
        if own in ("q", "k"):
            weight = interleaved(weight, target.heads if own == "q" else target.kv_heads)
        kind = Type[arguments.output if own == "lm_head" else arguments.blocks]
        writer.add_tensor(f"{name}.weight", quantize(weight.contiguous().numpy(), kind), raw_dtype=kind)
    writer.add_tensor("d2t", guessed.numpy().astype(np.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
