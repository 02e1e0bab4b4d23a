"""The made-up numbers of tensors, by the rule of tests/kit/head_files.rs."""
import numpy as np


def made_up(name, count):
    """Numbers between -1 and 1 that follow from a name."""
    seed = 0x811C9DC5
    for byte in name.encode():
        seed = (seed ^ byte) * 0x01000193 % 2**32
    x = (np.arange(count, dtype=np.uint64) * 2654435761 + seed) % 2**32
    x = ((x ^ (x >> 16)) * 2246822519) % 2**32
    x = ((x ^ (x >> 13)) * 3266489917) % 2**32
    x ^= x >> 16
    return (x / (2**32 - 1) * 2 - 1).astype(np.float32)
