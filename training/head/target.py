"""A Llama from a GGUF file in PyTorch: the target that a head is trained for.

Weights are rounded to half precision, unlike in the application, which multiplies them in 8 bits. The
difference is about as small as that between two of its formats.
"""
import numpy as np
import torch
import torch.nn.functional as F
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers


class Model:
    """A GGUF file."""

    def __init__(self, path):
        self.reader = GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def get(self, name):
        tensor = self.tensors[name]
        return torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).astype(np.float32)).clone()

    def halves(self, name, heads):
        """Query or key rows in the order of PyTorch code, with rotated pairs half a head apart; GGUF files have
        them interleaved."""
        weight = self.get(name)
        return weight.view(heads, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def rms_norm(x, weight, epsilon):
    return F.rms_norm(x.float(), weight.shape, weight.float(), epsilon)


def rotations(base, size, first, count, device, dtype):
    """Cosines and sines [T, hd] of RoPE for `count` positions from `first` on; the first half of sines is negative."""
    frequencies = base ** (-torch.arange(size // 2, device=device, dtype=torch.float32) / (size // 2))
    angles = torch.outer(torch.arange(first, first + count, device=device, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], -1).to(dtype), torch.cat([-sin, sin], -1).to(dtype)


def rotate(x, rotations):
    """Applies RoPE to x [B, n, T, hd]."""
    cos, sin = rotations
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class Cache:
    """Keys and values of `rows` texts of at most `length` tokens."""

    def __init__(self, target, rows, length):
        shape = (rows, target.kv_heads, length, target.head_dim)
        new = lambda: torch.zeros(shape, dtype=target.dtype, device=target.device)
        self.layers = [(new(), new()) for _ in range(target.layers)]


class Target(Model):
    """The target: its sizes at once, its weights after `load`."""

    def __init__(self, path):
        super().__init__(path)
        field = lambda key: self.reader.fields[f"llama.{key}"].contents()
        self.layers, self.hidden = field("block_count"), field("embedding_length")
        self.heads, self.kv_heads = field("attention.head_count"), field("attention.head_count_kv")
        self.ffn, self.epsilon = field("feed_forward_length"), field("attention.layer_norm_rms_epsilon")
        self.context, self.rope_base = field("context_length"), field("rope.freq_base")
        self.head_dim = self.hidden // self.heads
        self.vocabulary = self.tensors["token_embd.weight"].shape[1]

    def output(self):
        return self.get("output.weight" if "output.weight" in self.tensors else "token_embd.weight")

    def tokenizer(self):
        """The file's byte-level BPE, with digits apart (SmolLM)."""
        field = lambda key: self.reader.fields[f"tokenizer.ggml.{key}"].contents()
        if (field("model"), field("pre")) != ("gpt2", "smollm"):
            raise SystemExit(f"expected SmolLM's tokenizer, found {field('model')} {field('pre')}; adapt Target.tokenizer")
        tokens, kinds = field("tokens"), field("token_type")
        merges = [tuple(merge.split(" ")) for merge in field("merges")]
        tokenizer = Tokenizer(models.BPE(dict(zip(tokens, range(len(tokens)))), merges))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token, kind in zip(tokens, kinds) if kind == 3])
        return tokenizer

    def load(self, device):
        """Reads the weights: in half precision on a GPU, in single precision on the CPU."""
        self.device, self.dtype = torch.device(device), torch.float16 if device.startswith("cuda") else torch.float32
        put = lambda weight: weight.to(self.device, self.dtype)
        self.embedding, self.output_matrix = self.get("token_embd.weight").to(self.device), put(self.output())
        self.output_norm = self.get("output_norm.weight").to(self.device)
        self.blocks = []
        for layer in range(self.layers):
            name = lambda part: f"blk.{layer}.{part}.weight"
            q, k = self.halves(name("attn_q"), self.heads), self.halves(name("attn_k"), self.kv_heads)
            self.blocks.append({
                "attn_norm": self.get(name("attn_norm")).to(self.device),
                "qkv": put(torch.cat([q, k, self.get(name("attn_v"))])),
                "o": put(self.get(name("attn_output"))),
                "ffn_norm": self.get(name("ffn_norm")).to(self.device),
                "gate_up": put(torch.cat([self.get(name("ffn_gate")), self.get(name("ffn_up"))])),
                "down": put(self.get(name("ffn_down"))),
            })
        return self

    @torch.no_grad()
    def run(self, tokens, taps=(), cache=None, first=0):
        """A pass over tokens [B, T] at positions from `first` on: returns the final states [B, T, H], normed, and
        those that enter the layers `taps`, side by side. With a cache, T is 1."""
        B, T = tokens.shape
        turn = rotations(self.rope_base, self.head_dim, first, T, self.device, self.dtype)
        x, tapped = self.embedding[tokens], []
        for number, block in enumerate(self.blocks):
            if number in taps:
                tapped.append(x)
            qkv = F.linear(rms_norm(x, block["attn_norm"], self.epsilon).to(self.dtype), block["qkv"])
            qkv = qkv.view(B, T, -1, self.head_dim).transpose(1, 2)
            turned = rotate(qkv[:, : self.heads + self.kv_heads], turn)
            q, k, v = turned[:, : self.heads], turned[:, self.heads :], qkv[:, self.heads + self.kv_heads :]
            if cache:
                keys, values = cache.layers[number]
                keys[:, :, first], values[:, :, first] = k[:, :, 0], v[:, :, 0]
                # The heads of a group are rows over the same keys.
                q = q.reshape(B, self.kv_heads, -1, self.head_dim)
                mixed = F.scaled_dot_product_attention(q, keys[:, :, : first + 1], values[:, :, : first + 1])
                mixed = mixed.reshape(B, 1, -1)
            else:
                mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                mixed = mixed.transpose(1, 2).reshape(B, T, -1)
            x = x + F.linear(mixed, block["o"])
            gate, up = F.linear(rms_norm(x, block["ffn_norm"], self.epsilon).to(self.dtype), block["gate_up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, block["down"])
        return rms_norm(x, self.output_norm, self.epsilon).to(self.dtype), torch.cat(tapped, -1) if taps else None

    @torch.no_grad()
    def logits(self, states):
        return F.linear(states, self.output_matrix)
