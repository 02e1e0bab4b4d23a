#!/usr/bin/env python3
"""Writes what Foretoken knows from ggml about the formats that candle does not read.

    python -m venv venv && venv/bin/pip install gguf==0.19.0 safetensors
    cc -O1 -shared -fPIC -Iinclude -Isrc src/ggml-quants.c -o libggml-quants.so -lm  # in llama.cpp's folder ggml
    GGML=libggml-quants.so venv/bin/python tests/goldens/formats.py

The newest formats (IN_C) are read by ggml's own code, here that of llama.cpp's 0c1e570, the others by its package gguf.

formats.safetensors, which crates/model/src/format/tests.rs compares with, holds for each format `<name>` random blocks
`<name> blocks` [BLOCKS, bytes], the weights `<name>` of the first two of them as ggml reads these, and `<name> sum`: the
wrapping sum of the bits of all weights, each times the odd number 2 * index + 1. Zeros have no sign here.

crates/model/src/format/grids.bin holds the grids of the formats whose weights are not stored one by one, in the order
of GRIDS: a number of 16 bits for each entry, whose first weight is in its lowest bits, as an index into LEVELS.
"""
import ctypes
import os
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants
from safetensors.numpy import save_file

BLOCKS = 48
HERE = Path(__file__).parent
ENGINE = HERE.parent.parent / "crates/model/src/format"
# Where a block has numbers of half precision.
HALVES = {
    "Q2_K": [80, 82], "Q3_K": [108], "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0],
    "IQ3_XXS": [0], "IQ3_S": [0], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [], "NVFP4": [],
    "Q1_0": [0], "Q2_0": [0],
}
# Weights and bytes of a block, for formats that ggml's own code reads.
IN_C = {"NVFP4": (64, 36), "Q1_0": (128, 18), "Q2_0": (64, 18)}
LEVELS = {"IQ1": [-1, 0, 1], "IQ2": [8, 25, 43], "IQ3_XXS": [4, 12, 20, 28, 36, 44, 52, 62], "IQ3_S": range(1, 16, 2)}
GRIDS = ["IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"]


def random_blocks(name, random):
    _, size = IN_C[name] if name in IN_C else GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    blocks = random.integers(0, 256, (BLOCKS, size), np.uint8)
    scales = (random.uniform(-1, 1, (BLOCKS, 2)) * 2.0 ** random.integers(-14, 3, (BLOCKS, 2))).astype(np.float16)
    for at, scale in zip(HALVES[name], scales.T):
        blocks[:, at:at + 2] = scale.copy().view(np.uint8).reshape(-1, 2)
    if name == "IQ1_M":
        # Four bits of the scale are in the upper half of every other of the last eight bytes.
        for part in range(4):
            nibble = (scales[:, 0].copy().view(np.uint16) >> (4 * part) & 15).astype(np.uint8)
            blocks[:, 49 + 2 * part] = blocks[:, 49 + 2 * part] & 15 | nibble << 4
    if name == "MXFP4":
        # The exponents that a weight of 32 bits can have.
        blocks[:, 0] = np.concatenate([[0, 1, 2, 252], random.integers(0, 253, BLOCKS - 4)])
    return blocks


def dequantised(name, blocks):
    if name not in IN_C:
        return quants.dequantize(blocks, GGMLQuantizationType[name]).astype(np.float32)
    read = getattr(ctypes.CDLL(os.environ["GGML"], os.RTLD_LAZY), f"dequantize_row_{name.lower()}")
    weights = np.zeros((len(blocks), IN_C[name][0]), np.float32)
    read(ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(weights.ctypes.data), ctypes.c_int64(weights.size))
    return weights


def main():
    random, goldens = np.random.default_rng(1), {}
    for name in HALVES:
        blocks = random_blocks(name, random)
        weights = dequantised(name, blocks) + np.float32(0)
        bits = weights.reshape(-1).view(np.uint32).astype(np.uint64)
        goldens[f"{name} blocks"], goldens[name] = blocks, weights[:2]
        goldens[f"{name} sum"] = np.array([(bits * (2 * np.arange(bits.size, dtype=np.uint64) + 1)).sum()])
    save_file(goldens, HERE / "formats.safetensors")
    with open(ENGINE / "grids.bin", "wb") as file:
        for name in GRIDS:
            grid = getattr(quants, name)
            grid.init_grid()
            entries = grid.grid.reshape(grid.grid_shape).astype(int)
            levels = list(next(levels for prefix, levels in LEVELS.items() if name.startswith(prefix)))
            width = (len(levels) - 1).bit_length()
            indices = np.vectorize(levels.index)(entries) << (width * np.arange(entries.shape[1]))
            file.write(indices.sum(axis=1).astype("<u2").tobytes())


if __name__ == "__main__":
    main()
