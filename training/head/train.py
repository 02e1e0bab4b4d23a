#!/usr/bin/env python3
"""Train an EAGLE-3 draft head (Li et al. 2025) on conversations that `converse.py` wrote.

    python train.py --data conversations.npz --model smollm2.gguf --out runs/head --minutes 60
    python train.py --data conversations.npz --model smollm2.gguf --out runs/more --init runs/head/head.pt --first 2
    python train.py --data conversations.npz --model smollm2.gguf --init smollm2-head.gguf --evaluate

For a text x and the target's states g, row p reads the pair (x[p+1], g[p]) and predicts the token after
x[p+1]. Training-time test continues with the head's own states: step t reads x[p+1+t] and the head's state
of step t-1, and attends to the true rows up to p and to its own steps at p. All rows of a step run at
once. The target's states and probabilities are computed for each batch, not stored.

The schedule follows the clock: the number of steps grows from --first to --steps, and matrices are rounded
to Q4_1 for the last --rounded of the time.
"""
import argparse, math, os, random, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from target import Model, Target, rms_norm, rotate, rotations

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
        return rms_norm(x, self.weight, self.epsilon)


def as_q4_1(weight):
    """A matrix rounded to Q4_1: blocks of 32 weights, 16 steps from the least to the greatest. The gradient
    ignores the rounding (straight-through estimator, Bengio et al. 2013)."""
    blocks = weight.detach().view(-1, 32)
    low, high = blocks.amin(1, keepdim=True), blocks.amax(1, keepdim=True)
    step = ((high - low) / 15).clamp(min=1e-12)
    rounded = ((blocks - low) / step).round() * step.half().float() + low.half().float()
    return weight + (rounded.view_as(weight) - weight.detach())


class Matrix(nn.Linear):
    """A matrix of the head, rounded as in the file if `rounded` is set."""

    rounded = False

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x):
        return F.linear(x, as_q4_1(self.weight) if self.rounded else self.weight)


class Head(nn.Module):
    def __init__(self, target, draft_vocabulary):
        super().__init__()
        h, hd = target.hidden, target.head_dim
        self.heads, self.kv_heads, self.hd, self.base = target.heads, target.kv_heads, hd, target.rope_base
        norm = lambda: RMSNorm(h, target.epsilon)
        self.fc = Matrix(3 * h, h)
        self.input_norm, self.hidden_norm, self.post_norm, self.norm = norm(), norm(), norm(), norm()
        self.q, self.k, self.v = Matrix(2 * h, self.heads * hd), Matrix(2 * h, self.kv_heads * hd), Matrix(2 * h, self.kv_heads * hd)
        self.o = Matrix(self.heads * hd, h)
        self.gate, self.up, self.down = Matrix(h, target.ffn), Matrix(h, target.ffn), Matrix(target.ffn, h)
        self.lm_head = Matrix(h, draft_vocabulary)

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

    def continue_from(self, saved, target, guessed):
        """Takes a saved head's weights; tokens that are new to its draft vocabulary take the target's rows."""
        rows = dict(zip(saved["guessed"].tolist(), saved["head"]["lm_head.weight"]))
        output = target.output()
        lm_head = torch.stack([rows.get(token, output[token]) for token in guessed.tolist()])
        self.load_state_dict(saved["head"] | {"lm_head.weight": lm_head})

    def round(self, rounded):
        for module in self.modules():
            if isinstance(module, Matrix):
                module.rounded = rounded

    def step(self, embedding, state, past):
        """A step of all rows: returns the next states [B, T, H]; `past` are keys and values of earlier steps."""
        B, T, _ = state.shape
        u = torch.cat([self.input_norm(embedding), self.hidden_norm(state)], -1)
        shape = lambda x, heads: x.view(B, T, heads, self.hd).transpose(1, 2)
        q, k, v = shape(self.q(u), self.heads), shape(self.k(u), self.kv_heads), shape(self.v(u), self.kv_heads)
        turn = rotations(self.base, self.hd, len(past), T, q.device, q.dtype)
        q, k = rotate(q, turn), rotate(k, turn)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if not past:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scale = 1 / math.sqrt(self.hd)
            first_k, first_v = past[0]
            future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
            scores = ((q * scale) @ first_k.transpose(-1, -2)).masked_fill(future, float("-inf"))
            chain = past[1:] + [(k, v)]
            own = torch.stack([(q * key).sum(-1) * scale for key, _ in chain], -1)
            weights = torch.cat([scores, own.to(scores.dtype)], -1).softmax(-1).to(first_v.dtype)
            mixed = weights[..., :T] @ first_v
            for at, (_, value) in enumerate(chain):
                mixed = mixed + weights[..., T + at, None] * value
        past.append((k, v))
        y = state + self.o(mixed.transpose(1, 2).reshape(B, T, -1))
        n = self.post_norm(y)
        return y + self.down(F.silu(self.gate(n)) * self.up(n))


class Batch:
    """Conversations [B, T] with the target's states, and its probabilities of the draft vocabulary's tokens in the
    rows before tokens of replies."""

    def __init__(self, target, guessed, layers, tokens, reply):
        device = target.device
        # Row p has the probabilities of token p + 1. Found on the CPU, so that the GPU is not waited for.
        self.text, self.before = (torch.from_numpy(at) for at in np.nonzero(reply[:, 1:].numpy()))
        self.tokens, self.length = tokens.to(device).long(), tokens.shape[1]
        final, self.states = target.run(self.tokens, layers)
        rows = (self.text * self.length + self.before).to(device)
        logits = target.logits(final.flatten(0, 1)[rows]).float()
        self.probabilities = (logits[:, guessed] - logits.logsumexp(-1, keepdim=True)).exp()
        # Place of the target's likeliest token among them, or -1.
        likeliest = logits.argmax(-1)
        place = torch.searchsorted(guessed, likeliest).clamp(max=len(guessed) - 1)
        self.likeliest = torch.where(guessed[place] == likeliest, place, -1)

    def judged(self, step):
        """Rows of a step, in [B * (T - 1)], that predict a token of a reply, and which of the judged tokens it is."""
        rows = self.before - 1 - step
        judged = rows >= 0
        wanted = judged.nonzero()[:, 0]
        rows = self.text[judged] * (self.length - 1) + rows[judged]
        return rows.to(self.tokens.device, non_blocking=True), wanted.to(self.tokens.device, non_blocking=True)


def losses(head, embeddings, batch, steps, decay):
    """The loss, and [steps, 2]: for each step the number of rows, and of those with the target's likeliest token."""
    T = batch.length - 1
    state = head.fc(batch.states)[:, :T].float()
    loss, counts, past = 0.0, [], []
    for step in range(steps):
        # Row p reads x[p+1+t] and predicts the target's row p+1+t.
        read = F.pad(batch.tokens[:, 1 + step :], (0, step))
        state = head.step(embeddings[read], state, past)
        rows, wanted = batch.judged(step)
        logits = F.log_softmax(head.lm_head(head.norm(state.flatten(0, 1)[rows])).float(), -1)
        weight = batch.probabilities[wanted]
        loss = loss - decay**step * (logits * weight).sum() / weight.sum().clamp(min=1)
        right = logits.detach().argmax(-1) == batch.likeliest[wanted]
        counts.append(torch.stack([torch.ones_like(right).sum(), right.sum()]))
    return loss, torch.stack(counts)


class Training:
    def __init__(self, arguments):
        self.arguments, self.draw = arguments, random.Random(arguments.seed)
        self.target = Target(arguments.model).load(arguments.device)
        layers = self.target.layers
        self.layers = [2, layers // 2, layers - 3]
        file = np.load(arguments.data)
        self.tokens, self.reply = (torch.from_numpy(file[name]) for name in ["tokens", "reply"])
        saved = saved_head(arguments.init, self.target) if arguments.init else None
        self.guessed = saved["guessed"] if saved and arguments.keep_vocabulary else self.frequent()
        self.head = Head(self.target, len(self.guessed))
        self.head.continue_from(saved, self.target, self.guessed) if saved else self.head.begin_like(self.target, self.guessed)
        self.head.to(arguments.device)
        self.guessed = self.guessed.to(arguments.device)

    def frequent(self):
        """The most frequent tokens of the replies, in their order."""
        counts = torch.bincount(self.tokens[self.reply].long(), minlength=self.target.vocabulary)
        guessed = counts.argsort(descending=True, stable=True)[: self.arguments.vocabulary].sort().values
        print(f"{len(guessed)} tokens cover {counts[guessed].sum() / counts.sum():.2%} of the replies", flush=True)
        return guessed

    def batches(self, held_out):
        """Numbers of conversations: the last ones are held out."""
        count, size = len(self.tokens) - self.arguments.held_out, self.arguments.rows
        numbers = list(range(count, len(self.tokens)) if held_out else range(count))
        if not held_out:
            self.draw.shuffle(numbers)
        return [numbers[at : at + size] for at in range(0, len(numbers), size)]

    def losses(self, numbers, steps):
        batch = Batch(self.target, self.guessed, self.layers, self.tokens[numbers], self.reply[numbers])
        device = self.target.device.type
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            return losses(self.head, self.target.embedding, batch, steps, self.arguments.decay)

    @torch.no_grad()
    def evaluate(self):
        """For each step the share of rows whose most likely token is the target's, given the true text before."""
        counts = sum(self.losses(numbers, self.arguments.steps)[1] for numbers in self.batches(held_out=True))
        return (counts[:, 1] / counts[:, 0]).tolist()

    def save(self, shares):
        path = f"{self.arguments.out}/head.pt"
        saved = {"head": self.head.state_dict(), "guessed": self.guessed.cpu(), "layers": self.layers, "shares": shares}
        torch.save(saved, f"{path}.part")
        os.replace(f"{path}.part", path)

    def train(self):
        arguments, head = self.arguments, self.head
        parameters = list(head.parameters())
        matrices, vectors = [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim == 1]
        optimiser = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], lr=arguments.rate, betas=(0.9, 0.95), fused=True
        )
        begin, step, epoch, reported, recent = time.time(), 0, 0, time.time(), []
        total = arguments.minutes * 60
        while time.time() - begin < total:
            epoch += 1
            for numbers in self.batches(held_out=False):
                done = (time.time() - begin) / total
                if done >= 1:
                    break
                rate = arguments.rate * min(1, (step + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
                for group in optimiser.param_groups:
                    group["lr"] = rate
                head.round(done >= 1 - arguments.rounded)
                # Single steps have to be good before chains of steps are trained.
                steps = min(arguments.steps, arguments.first + int(done * 2 * (arguments.steps + 1 - arguments.first)))
                loss, counts = self.losses(numbers, steps)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 1.0)
                optimiser.step()
                step += 1
                recent.append(F.pad(counts, (0, 0, 0, arguments.steps - steps)))
                if time.time() - reported > arguments.report:
                    totals = sum(recent)[:steps]
                    seen = step * arguments.rows * self.tokens.shape[1] / 1e6
                    print(f"{time.time() - begin:.0f} s, epoch {epoch}, {seen:.1f} M tokens, {show((totals[:, 1] / totals[:, 0]).tolist())}", flush=True)
                    reported, recent = time.time(), []
                    self.save(None)
        shares = self.evaluate()
        print(f"shares at the end: {show(shares)} after {step} batches", flush=True)
        self.save(shares)


def show(shares):
    return " ".join(f"{share:.3f}" for share in shares)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", required=True, help="the target, a GGUF file of a Llama")
    parser.add_argument("--out", default="runs/head")
    parser.add_argument("--init", help="a head.pt or a GGUF file to continue from")
    parser.add_argument("--vocabulary", type=int, default=4096, help="size of the draft vocabulary")
    parser.add_argument("--keep-vocabulary", action="store_true", help="keep that of --init")
    parser.add_argument("--rounded", type=float, default=0.25, help="share of the time in which matrices are rounded to Q4_1")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--steps", type=int, default=4, help="steps of training-time test, from half the time on")
    parser.add_argument("--first", type=int, default=1, help="steps of training-time test at the beginning")
    parser.add_argument("--decay", type=float, default=0.8, help="decay of the loss from step to step")
    parser.add_argument("--rows", type=int, default=8, help="conversations of a batch")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--report", type=float, default=60, help="seconds between reports")
    parser.add_argument("--held-out", type=int, default=64, help="conversations")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    training = Training(arguments)
    training.head.round(arguments.rounded > 0 and arguments.evaluate)
    print(f"shares at the start: {show(training.evaluate())}", flush=True)
    if not arguments.evaluate:
        os.makedirs(arguments.out, exist_ok=True)
        training.train()


if __name__ == "__main__":
    main()
