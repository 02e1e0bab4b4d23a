"""Writes block_heads.safetensors: what speculators' own draft models score, with the weights of
tests/kit/random_block_head.rs, so that the engine can be compared with code that nobody here wrote. Domino and
LiLiCorr heads are speculators' DFlash with torch's own GRU and attention.

    pip install torch safetensors speculators==0.9.0 transformers==5.23.0
    python tests/goldens/block_heads.py

A text of 17 tokens with made-up states, and after it blocks of some lengths. Of each the scores of all places that
guess, each after the true token before it, and the confidences where there are any.
"""

from pathlib import Path

import numpy as np
import torch
from heads import made_up
from safetensors.torch import save_file
from speculators.config import SpeculatorsConfig, VerifierConfig
from speculators.models.dflash.config import DFlashSpeculatorConfig
from speculators.models.dflash.core import DFlashDraftModel
from speculators.models.dflash2.config import DFlash2SpeculatorConfig
from speculators.models.dflash2.core import DFlash2DraftModel
from speculators.models.dspark.config import DSparkSpeculatorConfig
from speculators.models.dspark.core import DSparkDraftModel
from speculators.proposals.greedy import GreedyTokenProposalConfig
from transformers.models.qwen3.modeling_qwen3 import Qwen3Config

HIDDEN, VOCABULARY, STATES = 256, 320, 2
BLOCK, MASK, TEXT, WINDOW, RANK, GRU = 8, 5, 17, 6, 32, 360
DOMINO, LILICORR = ("Domino", "MaskedDomino"), ("LiliCorr", "WideLiliCorr")
HEADS, LAYERS, CANDIDATES, FACTORS, SCALE = 4, 2, 8, 24, 10.0
LENGTHS = [2, 5, BLOCK]
TOKENS = [8 + i * 97 % 300 for i in range(TEXT + BLOCK)]


def shaped(name: str, shape) -> torch.Tensor:
    """Numbers that follow from a name, in a shape."""
    return torch.from_numpy(made_up(name, int(np.prod(shape)))).reshape(tuple(shape))


def weight(name: str, shape) -> torch.Tensor:
    """A head's tensor, as random_block_head.rs draws it."""
    if name.startswith("lilicorr."):
        rules = [
            ("norm" in name or name == "lilicorr.feature_mlp.0.weight", (1.0, 0.3)), (name.endswith("slot_bias"), (0.0, 1.0)),
            (name.endswith("bias"), (0.0, 0.1)), (name.endswith("embedding"), (0.0, 0.5)), (True, (0.0, 0.2)),
        ]
        centre, most = next(numbers for holds, numbers in rules if holds)
    elif "norm" in name:
        centre, most = 1.0, 0.3
    elif "base_kernel" in name:
        centre, most = 0.4, 0.4
    elif "prefix_gru" in name:
        centre, most = 0.0, 3.0 if "weight_ih" in name else 0.1
    elif any(part in name for part in ("codebook", "markov", "embed_proj.2")) or name.endswith("bias"):
        centre, most = 0.0, 1.0
    else:
        centre, most = 0.0, 0.09
    return centre + np.float32(most) * shaped(name, shape)


def model(kind: str):
    """A head of this kind, with an embedding and an output matrix of its own, and whether its first layer has a window."""
    reduced = kind in ("Reduced", "DSpark")
    windowed = kind in ("Reduced", "DFlash2", "MaskedDomino")
    guessed = len([token for token in range(VOCABULARY) if token % 3 == 2]) if reduced else VOCABULARY
    layers = Qwen3Config(
        hidden_size=HIDDEN, intermediate_size=352, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, vocab_size=VOCABULARY, max_position_embeddings=512,
        rms_norm_eps=1e-5, rope_theta=1e4, sliding_window=WINDOW, use_sliding_window=windowed,
        layer_types=["sliding_attention" if windowed else "full_attention", "full_attention"],
    )
    layers._attn_implementation = "eager"
    nobody = SpeculatorsConfig(
        algorithm="dflash", proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=BLOCK - 1)],
        default_proposal_method="greedy", verifier=VerifierConfig(name_or_path=None, architectures=[]),
    )
    common = {
        "transformer_layer_config": layers, "draft_vocab_size": guessed, "block_size": BLOCK,
        "aux_hidden_state_layer_ids": [1, 2], "mask_token_id": MASK, "speculators_config": nobody,
    }
    if kind == "DFlash2":
        config = DFlash2SpeculatorConfig(**common, selector_rank=RANK)
        head = DFlash2DraftModel(config)
    elif kind in ("DSpark", "Anchored"):
        config = DSparkSpeculatorConfig(**common, markov_rank=RANK, sample_from_anchor=kind == "Anchored")
        head = DSparkDraftModel(config)
    else:
        head = DFlashDraftModel(DFlashSpeculatorConfig(**common))
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            if not name.startswith("verifier_"):
                parameter.copy_(weight(name, parameter.shape))
    return head.float().eval(), windowed


def named(name: str, module: torch.nn.Module) -> torch.nn.Module:
    """A module with weights by their names, which begin with the module's."""
    for part, parameter in module.named_parameters():
        parameter.copy_(weight(f"{name}.{part}", parameter.shape))
    return module.eval()


def corrected(head, kind: str, hidden: torch.Tensor, logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Scores of a Domino head after the true tokens before each place that guesses."""
    gru = named("prefix_gru", torch.nn.GRU(HIDDEN, GRU, bias=False, batch_first=True))
    before = named("embed_proj.0", torch.nn.Linear(HIDDEN + GRU, RANK, bias=False))
    after = named("embed_proj.2", torch.nn.Linear(RANK, VOCABULARY, bias=False))
    states = gru(head.embed_tokens(tokens))[0]
    bias = after(torch.nn.functional.silu(before(torch.cat([hidden, states], dim=-1))))
    plain = 1 if kind == "Domino" else 0
    return torch.cat([logits[:, :plain], (logits + bias)[:, plain:]], dim=1)


def paired(head, kind: str, hidden: torch.Tensor, logits: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
    """Scores of a LiLiCorr head along the likeliest path, of candidates only. hidden and logits: [slots, ...]."""
    width = 64 if kind == "LiliCorr" else HIDDEN
    def linear(name, inputs, outputs):
        return named(f"lilicorr.{name}", torch.nn.Linear(inputs, outputs))
    def norm(name, x):
        return torch.nn.functional.rms_norm(x, (width,), weight(f"lilicorr.{name}.weight", (width,)), 1e-5)
    slots = len(hidden)
    logs, tokens = logits.log_softmax(-1).topk(CANDIDATES)
    rank = torch.arange(CANDIDATES).expand(slots, -1)
    features = torch.stack(
        [logs, logs.exp(), logs - logs[:, :1], rank / (CANDIDATES - 1), (rank == 0).float()], dim=-1)
    embedded = head.embed_tokens(tokens)
    x = embedded if kind == "WideLiliCorr" else linear("token_proj", HIDDEN, width)(embedded)
    x = x + linear("pass_hidden_proj", HIDDEN, width)(hidden)[:, None]
    features = named("lilicorr.feature_mlp.0", torch.nn.LayerNorm(5))(features)
    features = torch.nn.functional.silu(linear("feature_mlp.1", 5, width)(features))
    x = x + linear("feature_mlp.3", width, width)(features)
    x = x + weight("lilicorr.slot_embedding", (1, 1, BLOCK - 1, 1, width))[0, 0, :slots]
    x = x + weight("lilicorr.rank_embedding", (1, 1, 1, CANDIDATES, width))[0, 0]
    x = x.reshape(1, slots * CANDIDATES, width)
    slot = torch.arange(slots).repeat_interleave(CANDIDATES)
    apart = slot[:, None] - slot[None, :]
    mask = weight("lilicorr.relative_slot_bias", (HEADS, 2 * BLOCK - 1))[:, apart + BLOCK - 1]
    mask = mask + (apart == 0) * weight("lilicorr.same_slot_bias", (HEADS,))[:, None, None]
    for layer in (f"layers.{index}" for index in range(LAYERS)):
        attention = named(f"lilicorr.{layer}.attn", torch.nn.MultiheadAttention(width, HEADS, batch_first=True))
        normed = norm(f"{layer}.attn_norm", x)
        x = x + attention(normed, normed, normed, attn_mask=mask, need_weights=False)[0]
        inner = linear(f"{layer}.mlp.0", width, width * 3 // 2)(norm(f"{layer}.mlp_norm", x))
        x = x + linear(f"{layer}.mlp.2", width * 3 // 2, width)(torch.nn.functional.silu(inner))
    x = norm("output_norm", x)
    start = norm("anchor_norm", linear("context_proj", HIDDEN, width)(anchor))
    row = start.expand_as(x)
    factor = torch.nn.functional.silu(linear("factor_input_proj", 3 * width, width)(torch.cat([x, row, x * row], -1)))
    def unit(name, x):
        return torch.nn.functional.normalize(linear(name, width, FACTORS)(x), dim=-1, eps=1e-6)
    out, into = unit("out_head", factor), unit("in_head", factor)
    out, into = (of.view(slots, CANDIDATES, FACTORS) for of in (out, into))
    before, rows = unit("anchor_out_head", start).view(FACTORS), []
    for position in range(slots):
        scores = SCALE * into[position] @ before
        rows.append(torch.full((VOCABULARY,), float("-inf")).scatter(0, tokens[position], scores))
        before = out[position, scores.argmax()]
    return torch.stack(rows)


def seen(rows: int, windowed: bool, causal: bool) -> torch.Tensor:
    """What is added to a layer's scores: which rows of the text and of the block each row of the block sees, as
    DFlash's authors' own model has it."""
    query, key = torch.arange(TEXT, TEXT + rows)[:, None], torch.arange(TEXT + rows)[None, :]
    visible = torch.ones(rows, TEXT + rows, dtype=torch.bool)
    if causal:
        visible &= key <= query
    if windowed:
        visible &= (query - key < WINDOW) & (key - query < WINDOW)
    return torch.zeros(rows, TEXT + rows).masked_fill(~visible, float("-inf"))[None, None]


@torch.no_grad()
def rows_of(kind: str, rows: int) -> dict[str, torch.Tensor]:
    head, windowed = model(kind)
    if kind == "DFlash2":
        # A convolution counts its rows within blocks of this length.
        for layer in head.layers:
            layer.attention_conv.block_size = layer.mlp_conv.block_size = rows
    states = shaped("states", (1, TEXT, STATES * HIDDEN))
    context = head.hidden_norm(head.fc(states))
    x = head.embed_tokens(torch.tensor([[TOKENS[TEXT]] + [MASK] * (rows - 1)]))
    positions = head.rotary_emb(x, torch.arange(TEXT + rows)[None])
    for index, layer in enumerate(head.layers):
        slides = windowed and index == 0
        mask = seen(rows, slides, slides and kind not in ("DFlash2", *DOMINO))
        x = layer(hidden_states=x, target_hidden=context, attention_mask=mask, position_embeddings=positions)
    hidden = head.norm(x)
    logits = head.lm_head(hidden)
    first = 0 if kind in ("Anchored", "Domino") else 1
    before = torch.tensor([[TOKENS[TEXT + row - first] for row in range(rows)]])
    found = {}
    if kind == "DFlash2":
        candidates, scores = head.candidate_selector.select(logits, hidden, before)
        logits = torch.full_like(logits, float("-inf")).scatter(-1, candidates, scores)
    if kind in ("DSpark", "Anchored"):
        logits = logits + head.markov_head.block_bias(prev_token_ids=before, hidden_states=hidden)
        of_before = head.markov_head.prev_embeddings(before)
        confidence = head.confidence_head(torch.cat([hidden, of_before], dim=-1)).sigmoid()
        found[f"{kind} {rows} confidence"] = confidence[0, first:].contiguous()
    if kind in LILICORR:
        logits[0, first:] = paired(head, kind, hidden[0, first:], logits[0, first:], context[0, -1])
    if kind in DOMINO:
        logits[:, first:] = corrected(head, kind, hidden[:, first:], logits[:, first:], before[:, first:])
    found[f"{kind} {rows}"] = logits[0, first:].contiguous()
    return found


def main() -> None:
    tensors = {}
    for kind in ["DFlash", "Reduced", "DFlash2", "DSpark", "Anchored", *DOMINO, *LILICORR]:
        for rows in LENGTHS:
            tensors.update(rows_of(kind, rows))
    save_file(tensors, Path(__file__).with_suffix(".safetensors"))


if __name__ == "__main__":
    main()
