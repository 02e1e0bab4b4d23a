#!/usr/bin/env python3
"""Train an EAGLE-3 draft head (Li et al. 2025) on the states that `head-data states` wrote.

    python train.py --data states --model smollm2.gguf --out runs/head --minutes 60
    python train.py --data states --model smollm2.gguf --out runs/more --init runs/head/head.pt --minutes 60
    python train.py --data states --model smollm2.gguf --out runs/more --init ../../smollm2/smollm2-head.gguf --first 2
    python train.py --data states --model smollm2.gguf --out runs/q4 --init runs/head/head.pt --q4-1 --train-output --first 2
    python train.py --data states --model smollm2.gguf --init runs/head/head.pt --evaluate

For a text x and the target's fused states g, row p reads the pair (x[p+1], g[p]) and predicts the
token after x[p+1]. Training-time test continues with the head's own states: step t reads x[p+1+t] and
the head's state of step t-1, and attends to the true rows up to p and to its own steps at p. All rows
of a step run at once.

The schedule follows the clock: the number of steps grows from --first to --steps. Runs on CUDA if there
is a GPU (--device to override).
"""
import argparse, json, math, os, random, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from gguf import GGUFReader
from gguf.quants import dequantize


# --------------------------------------------------------------------------------------------- data
class Data:
    """The arrays of `head-data states`; the last texts are held out."""

    def __init__(self, folder, held_out):
        self.index = json.load(open(f"{folder}/texts.json"))
        hidden, layers, top = self.index["hidden"], len(self.index["layers"]), self.index["likeliest"]
        array = lambda name, dtype, width: np.memmap(f"{folder}/{name}", dtype, "r").reshape(-1, width)
        self.tokens = np.memmap(f"{folder}/tokens.u32", np.uint32, "r")
        self.states = array("states.f16", np.float16, hidden * layers)
        self.likeliest = array("likeliest.u32", np.uint32, top)
        self.probabilities = array("probabilities.f16", np.float16, top)
        starts = np.concatenate([[0], np.cumsum([rows for rows, _ in self.index["texts"]])])
        texts = [(int(start), rows, prompt) for start, (rows, prompt) in zip(starts, self.index["texts"])]
        texts = [text for text in texts if text[1] - text[2] >= 8]
        self.train, self.test = texts[:-held_out], texts[-held_out:]

    def reply_counts(self):
        counts = np.zeros(self.index["vocabulary"], np.int64)
        for start, rows, prompt in self.train:
            np.add.at(counts, self.tokens[start + prompt : start + rows], 1)
        return counts

    def batches(self, texts, rows, draw):
        """Batches of texts of similar length, with at most `rows` rows including padding."""
        texts = sorted(texts, key=lambda text: text[1] + draw.random() * 32)
        batches, batch = [], []
        for text in texts:
            if batch and (len(batch) + 1) * text[1] > rows:
                batches.append(batch)
                batch = []
            batch.append(text)
        batches.append(batch)
        draw.shuffle(batches)
        return batches

    def collate(self, batch, device):
        """tokens [B, T], states [B, T, 3H], likeliest [B, T, k], probabilities [B, T, k], and a mask [B, T] of
        the rows whose next token belongs to the reply."""
        longest = max(rows for _, rows, _ in batch)
        pad = lambda array, start, rows: np.pad(array[start : start + rows], [(0, longest - rows)] + [(0, 0)] * (array.ndim - 1))
        stack = lambda array: torch.from_numpy(np.stack([pad(array, start, rows) for start, rows, _ in batch])).to(device)
        reply = np.zeros((len(batch), longest), bool)
        for at, (_, rows, prompt) in enumerate(batch):
            reply[at, prompt - 1 : rows] = True
        return (stack(self.tokens).long(), stack(self.states).float(),
                stack(self.likeliest).long(), stack(self.probabilities).float(), torch.from_numpy(reply).to(device))


# ------------------------------------------------------------------------------------------- target
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


class Target(Model):
    """Parts of the target's file that the head needs."""

    def __init__(self, path):
        super().__init__(path)
        field = lambda key: self.reader.fields[f"llama.{key}"].contents()
        self.layers, self.hidden = field("block_count"), field("embedding_length")
        self.heads, self.kv_heads = field("attention.head_count"), field("attention.head_count_kv")
        self.ffn, self.epsilon = field("feed_forward_length"), field("attention.layer_norm_rms_epsilon")
        self.context, self.rope_base = field("context_length"), field("rope.freq_base")
        self.head_dim = self.hidden // self.heads

    def output(self):
        return self.get("output.weight" if "output.weight" in self.tensors else "token_embd.weight")


# --------------------------------------------------------------------------------------------- head
# Names of a head's vectors and matrices in GGUF files.
VECTORS = {"input_norm": "blk.0.attn_norm", "hidden_norm": "blk.0.attn_norm_2", "post_norm": "blk.0.ffn_norm", "norm": "output_norm"}
MATRICES = {"fc": "fc", "q": "blk.0.attn_q", "k": "blk.0.attn_k", "v": "blk.0.attn_v", "o": "blk.0.attn_output",
            "gate": "blk.0.ffn_gate", "up": "blk.0.ffn_up", "down": "blk.0.ffn_down", "lm_head": "output"}


def saved_head(path, target):
    """A saved head: its weights, and its draft vocabulary."""
    if not path.endswith(".gguf"):
        return torch.load(path, map_location="cpu")
    file = Model(path)
    weights = {f"{own}.weight": file.get(f"{name}.weight") for own, name in (VECTORS | MATRICES).items()}
    for own, heads in [("q", target.heads), ("k", target.kv_heads)]:
        weights[f"{own}.weight"] = file.halves(f"{MATRICES[own]}.weight", heads)
    guessed = torch.from_numpy(file.tensors["d2t"].data.astype(np.int64))
    return {"head": weights, "guessed": guessed}


class RMSNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.epsilon).to(x.dtype)


def as_q4_1(weight):
    """A matrix rounded to Q4_1: blocks of 32 weights, 16 steps from the least to the greatest. The gradient
    ignores the rounding (straight-through estimator, Bengio et al. 2013)."""
    blocks = weight.detach().view(-1, 32)
    low, high = blocks.amin(1, keepdim=True), blocks.amax(1, keepdim=True)
    step = ((high - low) / 15).clamp(min=1e-12)
    rounded = ((blocks - low) / step).round() * step.half().float() + low.half().float()
    return weight + (rounded.view_as(weight) - weight.detach())


class Matrix(nn.Linear):
    """A matrix of the head, rounded as in the file if `q4_1` is set."""

    def __init__(self, inputs, outputs, q4_1):
        super().__init__(inputs, outputs, bias=False)
        self.q4_1 = q4_1

    def forward(self, x):
        return F.linear(x, as_q4_1(self.weight) if self.q4_1 else self.weight)


class Head(nn.Module):
    def __init__(self, target, draft_vocabulary, q4_1):
        super().__init__()
        h, hd = target.hidden, target.head_dim
        linear = lambda inputs, outputs: Matrix(inputs, outputs, q4_1)
        self.heads, self.kv_heads, self.hd, self.base = target.heads, target.kv_heads, hd, target.rope_base
        self.fc = linear(3 * h, h)
        self.input_norm, self.hidden_norm = RMSNorm(h, target.epsilon), RMSNorm(h, target.epsilon)
        self.q, self.k, self.v = linear(2 * h, self.heads * hd), linear(2 * h, self.kv_heads * hd), linear(2 * h, self.kv_heads * hd)
        self.o = linear(self.heads * hd, h)
        self.post_norm, self.norm = RMSNorm(h, target.epsilon), RMSNorm(h, target.epsilon)
        self.gate, self.up, self.down = linear(h, target.ffn), linear(h, target.ffn), linear(target.ffn, h)
        self.lm_head = linear(h, draft_vocabulary)

    def begin_like(self, target, guessed):
        """Initialises the head as the target's last layer on its last tapped state, which is close to its task."""
        last, h = f"blk.{target.layers - 1}", target.hidden
        with torch.no_grad():
            self.fc.weight.normal_(0, 0.002)
            self.fc.weight[:, 2 * h :] += torch.eye(h)
            for own, name, heads in [(self.q, "attn_q", self.heads), (self.k, "attn_k", self.kv_heads)]:
                own.weight.normal_(0, 0.01)
                own.weight[:, h:] += target.halves(f"{last}.{name}.weight", heads)
            self.v.weight.normal_(0, 0.01)
            self.v.weight[:, h:] += target.get(f"{last}.attn_v.weight")
            for own, name in [(self.o, "attn_output"), (self.gate, "ffn_gate"), (self.up, "ffn_up"), (self.down, "ffn_down")]:
                own.weight.copy_(target.get(f"{last}.{name}.weight"))
            self.hidden_norm.weight.copy_(target.get(f"{last}.attn_norm.weight"))
            self.post_norm.weight.copy_(target.get(f"{last}.ffn_norm.weight"))
            self.norm.weight.copy_(target.get("output_norm.weight"))
            self.lm_head.weight.copy_(target.output()[guessed])

    def rotate(self, x, first):
        """Applies RoPE to x [B, n, T, hd] at positions from `first` on."""
        half = self.hd // 2
        frequencies = self.base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
        angles = torch.outer(torch.arange(first, first + x.shape[2], device=x.device, dtype=torch.float32), frequencies)
        cos, sin = angles.cos(), angles.sin()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def step(self, embedding, state, past):
        """A step of all rows: returns the next states [B, T, H]; `past` are keys and values of earlier steps."""
        B, T, _ = state.shape
        u = torch.cat([self.input_norm(embedding), self.hidden_norm(state)], -1)
        shape = lambda x, heads: x.view(B, T, heads, self.hd).transpose(1, 2)
        t = len(past)
        q = self.rotate(shape(self.q(u), self.heads), t)
        k = self.rotate(shape(self.k(u), self.kv_heads), t)
        v = shape(self.v(u), self.kv_heads)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if not past:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scale = 1 / math.sqrt(self.hd)
            first_k, first_v = past[0]
            causal = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()
            scores = (q @ first_k.transpose(-1, -2) * scale).masked_fill(~causal, float("-inf"))
            chain = past[1:] + [(k, v)]
            own = torch.stack([(q * key).sum(-1) * scale for key, _ in chain], -1)
            weights = torch.cat([scores, own], -1).softmax(-1)
            mixed = weights[..., :T] @ first_v
            for at, (_, value) in enumerate(chain):
                mixed = mixed + weights[..., T + at, None] * value
        past.append((k, v))
        y = state + self.o(mixed.transpose(1, 2).reshape(B, T, -1))
        n = self.post_norm(y)
        return y + self.down(F.silu(self.gate(n)) * self.up(n))


def losses(head, embeddings, batch, rows_of, steps, decay):
    """The loss, and for each step the numbers of rows and of rows with the target's most likely token."""
    tokens, states, likeliest, probabilities, reply = batch
    state = head.fc(states)[:, : tokens.shape[1] - 1]
    loss, counts, past = 0.0, [], []
    B, T = state.shape[:2]
    for step in range(steps):
        # Row p reads x[p+1+t] and predicts the target's row p+1+t.
        shifted = lambda array: F.pad(array[:, 1 + step :], (0, 0) * (array.ndim - 2) + (0, step))[:, :T]
        state = head.step(embeddings[shifted(tokens)], state, past)
        judged = shifted(reply)
        rows = head.norm(state[judged])
        wanted, weight = rows_of[shifted(likeliest)[judged]], shifted(probabilities)[judged]
        weight = weight * (wanted >= 0)
        logits = F.log_softmax(head.lm_head(rows), -1)
        mass = weight.sum(-1, keepdim=True)
        cross = -(logits.gather(1, wanted.clamp(min=0)) * weight).sum(-1)
        loss = loss + decay**step * cross.sum() / mass.sum().clamp(min=1)
        with torch.no_grad():
            right = logits.argmax(-1) == wanted[:, 0]
            counts.append((len(right), int(right.sum())))
    return loss, counts


def evaluate(head, data, embeddings, rows_of, arguments, device):
    """For each step the share of rows whose most likely token is the target's, given the true text before."""
    head.eval()
    totals = np.zeros((arguments.steps, 2))
    with torch.no_grad():
        for batch in data.batches(data.test, arguments.rows, random.Random(0)):
            _, counts = losses(head, embeddings, data.collate(batch, device), rows_of, arguments.steps, 1.0)
            totals += np.array(counts)
    head.train()
    return totals[:, 1] / totals[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", required=True, help="the target, a GGUF file of a Llama")
    parser.add_argument("--out", default="runs/head")
    parser.add_argument("--init", help="a head.pt or a GGUF file to continue from")
    parser.add_argument("--vocabulary", type=int, default=4096, help="size of the draft vocabulary")
    parser.add_argument("--train-output", action="store_true", help="also train the output matrix, which is otherwise the target's")
    parser.add_argument("--q4-1", action="store_true", help="train and evaluate with matrices rounded to Q4_1")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--steps", type=int, default=4, help="steps of training-time test at the end")
    parser.add_argument("--first", type=int, default=1, help="steps of training-time test at the beginning")
    parser.add_argument("--decay", type=float, default=0.8, help="decay of the loss from step to step")
    parser.add_argument("--rows", type=int, default=1024, help="rows of a batch")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--held-out", type=int, default=64)
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    draw, device = random.Random(arguments.seed), arguments.device
    data, target = Data(arguments.data, arguments.held_out), Target(arguments.model)
    embeddings = target.get("token_embd.weight").to(device)
    saved = saved_head(arguments.init, target) if arguments.init else None
    if saved:
        guessed = saved["guessed"]
    else:
        counts = data.reply_counts()
        guessed = torch.from_numpy(np.sort(np.argsort(-counts, kind="stable")[: arguments.vocabulary]).copy())
        print(f"{arguments.vocabulary} tokens cover {counts[guessed.numpy()].sum() / counts.sum():.2%} of the replies", flush=True)
    rows_of = torch.full((data.index["vocabulary"],), -1, dtype=torch.long)
    rows_of[guessed] = torch.arange(len(guessed))
    rows_of = rows_of.to(device)
    head = Head(target, len(guessed), arguments.q4_1)
    head.load_state_dict(saved["head"]) if saved else head.begin_like(target, guessed)
    head.to(device)
    head.lm_head.requires_grad_(arguments.train_output)
    show = lambda shares: " ".join(f"{share:.3f}" for share in shares)
    print(f"shares at the start: {show(evaluate(head, data, embeddings, rows_of, arguments, device))}", flush=True)
    if arguments.evaluate:
        return
    os.makedirs(arguments.out, exist_ok=True)
    trained = [p for p in head.parameters() if p.requires_grad]
    matrices, others = [p for p in trained if p.ndim > 1], [p for p in trained if p.ndim == 1]
    optimiser = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], lr=arguments.rate, betas=(0.9, 0.95)
    )
    def save(shares):
        saved = {"head": head.state_dict(), "guessed": guessed, "layers": data.index["layers"], "shares": shares}
        torch.save(saved, f"{arguments.out}/head.pt.part")
        os.replace(f"{arguments.out}/head.pt.part", f"{arguments.out}/head.pt")

    begin, seen, step, reported, epoch, recent = time.time(), 0, 0, time.time(), 0, []
    total = arguments.minutes * 60
    while time.time() - begin < total:
        epoch += 1
        for batch in data.batches(data.train, arguments.rows, draw):
            done = (time.time() - begin) / total
            if done >= 1:
                break
            rate = arguments.rate * min(1, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
            for group in optimiser.param_groups:
                group["lr"] = rate
            # Single steps have to be good before chains of steps are trained.
            steps = arguments.first + int(done * (arguments.steps + 1 - arguments.first))
            loss, counts = losses(head, embeddings, data.collate(batch, device), rows_of, steps, arguments.decay)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimiser.step()
            seen, step = seen + sum(rows for _, rows, _ in batch), step + 1
            recent.append(np.pad(np.array(counts), [(0, arguments.steps - steps), (0, 0)]))
            if time.time() - reported > 60:
                totals = sum(recent)
                minutes = (time.time() - begin) / 60
                print(f"{minutes:.0f} min, epoch {epoch}, {seen / 1e6:.2f} M tokens, {show(totals[:steps, 1] / totals[:steps, 0])}", flush=True)
                reported, recent = time.time(), []
                save(None)
    shares = evaluate(head, data, embeddings, rows_of, arguments, device)
    print(f"shares at the end: {show(shares)} after {seen / 1e6:.2f} M tokens", flush=True)
    save(shares.tolist())


if __name__ == "__main__":
    main()
