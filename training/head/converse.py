#!/usr/bin/env python3
"""Let the target write conversations to train a head on, many at a time.

    python converse.py --model smollm2.gguf --prompts prompts.jsonl --out conversations.npz --minutes 2

A head has to guess what this target writes, and not what people write: so the target writes the replies
and most messages of the user, too, as models trained on conversations can (Xu et al. 2024, Magpie). A
share of the conversations begins with a line of --prompts. Messages of the user are drawn at temperature 0.9,
replies greedily or at 0.7, most of them with penalties close to those that the application gives small models.

The file has `tokens` [N, T], and `reply` [N, T]: the tokens that the target drew in replies, ends included.
"""
import argparse, json, time
import numpy as np
import torch
from target import Cache, Target

USER, REPLY = 0, 1
# Most tokens of a message; a longer one is ended.
LONGEST = {USER: 320, REPLY: 448}
# Temperature of replies, and whether they have penalties.
WAYS = [(0.0, False), (0.7, False), (0.0, True), (0.7, True)]
SHARES = [0.2, 0.2, 0.15, 0.45]


class Template:
    """Tokens between messages of ChatML (<|im_start|>, <|im_end|>)."""

    def __init__(self, tokenizer, system):
        tokens = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
        self.begin = tokens(f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n")
        self.end = tokens("<|im_end|>")[0]
        self.after_user = tokens("\n<|im_start|>assistant\n")
        self.after_reply = tokens("\n<|im_start|>user\n")
        self.first = lambda prompt: self.begin + tokens(prompt) + [self.end] + self.after_user


def penalise(logits, tokens, position, penalised):
    """Repetition penalty of 1.03 over 128 tokens, and DRY from four repeated tokens on, in three steps, for the rows
    `penalised`."""
    recent = tokens[:, max(0, position - 128) : position]
    own = logits.gather(1, recent)
    lowered = torch.where(own > 0, own / 1.03, own * 1.03)
    logits.scatter_(1, recent, torch.where(penalised[:, None], lowered, own))

    def repeats(text, length):
        """Where the last `length` tokens of a text occur before: [rows, position - length]."""
        pairs = [text[:, length - back : position - back] == text[:, position - back, None] for back in range(1, length + 1)]
        return torch.stack(pairs).all(0)

    if position <= 8:
        return
    rows = (repeats(tokens, 4).any(1) & penalised).nonzero()[:, 0]
    text, lower = tokens[rows], torch.zeros((len(rows), logits.shape[1]), device=logits.device)
    for length, penalty in [(4, 0.8), (6, 2.45), (8, 7.5)]:
        lower.scatter_reduce_(1, text[:, length:position], repeats(text, length).to(logits.dtype) * penalty, "amax")
    logits[rows] -= lower


@torch.no_grad()
def write(target, template, given, length, generator):
    """Conversations of `length` tokens that begin with the texts `given`, as arrays of the module's shapes."""
    device, rows = target.device, len(given)
    tokens = torch.full((rows, length), template.end, device=device)
    reply = torch.zeros((rows, length), dtype=torch.bool, device=device)
    for row, text in enumerate(given):
        tokens[row, : len(text)] = torch.tensor(text)
    lengths = torch.tensor([len(text) for text in given], device=device)
    phase = torch.tensor([USER if len(text) == len(template.begin) else REPLY for text in given], device=device)
    ways = torch.multinomial(torch.tensor(SHARES), rows, True, generator=generator).to(device)
    temperatures, penalised = (torch.tensor(values, device=device)[ways] for values in zip(*WAYS))
    # Tokens that follow a message's end, first those after the user's; `queue` is the next one's place, or -1.
    forced = torch.tensor(template.after_user + template.after_reply, device=device)
    turns = {USER: 0, REPLY: len(template.after_user)}
    starts, ends = torch.tensor([turns[USER], turns[REPLY]], device=device), [turns[REPLY], len(forced)]
    queue, written = torch.full((rows,), -1, device=device), torch.zeros(rows, dtype=torch.long, device=device)
    limits = torch.tensor([LONGEST[USER], LONGEST[REPLY]], device=device)
    cache = Cache(target, rows, length)
    for position in range(1, length):
        states, _ = target.run(tokens[:, position - 1 : position], cache=cache, first=position - 1)
        logits = target.logits(states[:, 0]).float()
        writes_reply = phase == REPLY
        penalise(logits, tokens, position, penalised & writes_reply)
        temperature = torch.where(writes_reply, temperatures, 0.9)
        noise = torch.empty_like(logits).exponential_().log_()
        drawn = logits.addcmul_(noise, temperature[:, None], value=-1).argmax(-1)
        drawn = torch.where(written + 1 >= limits[phase], template.end, drawn)
        free = (queue < 0) & (position >= lengths)
        next_token = torch.where(free, drawn, torch.where(queue >= 0, forced[queue.clamp(min=0)], tokens[:, position]))
        tokens[:, position] = next_token
        reply[:, position] = free & writes_reply
        written = torch.where(free, written + 1, 0)
        ended = free & (next_token == template.end)
        queue = torch.where(ended, starts[phase], torch.where(queue >= 0, queue + 1, queue))
        for next_phase, end in [(REPLY, ends[USER]), (USER, ends[REPLY])]:
            done = (queue == end) & ~ended & (phase != next_phase)
            phase, queue = torch.where(done, next_phase, phase), torch.where(done, -1, queue)
    return tokens.cpu().numpy().astype(np.int32), reply.cpu().numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the target, a GGUF file of a Llama with ChatML")
    parser.add_argument("--out", required=True)
    parser.add_argument("--prompts", help="first messages, written by prompts.py")
    parser.add_argument("--share", type=float, default=0.3, help="share of conversations that begin with one of --prompts")
    parser.add_argument("--system", default="You are a helpful AI assistant named SmolLM, trained by Hugging Face")
    parser.add_argument("--rows", type=int, default=2048, help="conversations at a time")
    parser.add_argument("--length", type=int, default=1024, help="tokens of a conversation")
    parser.add_argument("--minutes", type=float, default=2, help="no round begins that would end later")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    generator = torch.Generator().manual_seed(arguments.seed)
    target = Target(arguments.model).load(arguments.device)
    template = Template(target.tokenizer(), arguments.system)
    prompts = [json.loads(line) for line in open(arguments.prompts)] if arguments.prompts else []
    firsts = [template.first(prompt) for prompt in prompts]
    firsts = iter([first for first in firsts if len(first) < arguments.length // 2])
    begin, rounds, longest = time.time(), [], 0
    while not rounds or time.time() - begin + longest < arguments.minutes * 60:
        started = time.time()
        own = torch.rand(arguments.rows, generator=generator) >= arguments.share
        given = [template.begin if own else next(firsts, template.begin) for own in own]
        rounds.append(write(target, template, given, arguments.length, generator))
        longest = max(longest, time.time() - started)
        count = sum(tokens.size for tokens, _ in rounds)
        print(f"{count / 1e6:.2f} M tokens, {count / (time.time() - begin):.0f} tokens/s", flush=True)
    tokens, reply = (np.concatenate(arrays) for arrays in zip(*rounds))
    np.savez(arguments.out, tokens=tokens, reply=reply)
    print(f"{len(tokens)} conversations; {reply.mean():.1%} of the tokens are of replies")


if __name__ == "__main__":
    main()
