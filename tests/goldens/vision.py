#!/usr/bin/env python3
"""Writes vision.safetensors: what transformers makes of pictures with the models of tests/kit/random_vision.rs, in 32
bits, which tests/engine/vision.rs compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.24.0 safetensors pillow
    cargo run -p foretoken-tests --example write_vision -- FOLDER
    venv/bin/python tests/goldens/vision.py FOLDER

For each model, picture and detail: a hash of the normalised pixels, the embeddings, and the text around them. For each
model the logits of a text with a picture in it, and its tokens. Also hashes of pictures that Pillow resized.
"""
import hashlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import transformers
from made_up import made_up
from PIL import Image
from safetensors.torch import save_file
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil
from transformers.models.gemma4.processing_gemma4 import Gemma4Processor
from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

HERE = Path(__file__).parent
BEFORE = [3 + i * 97 % 250 for i in range(9)]
AFTER = [5 + i * 89 % 250 for i in range(12)]
# Width and height of the pictures.
WIDE, SQUARE = (75, 50), (40, 40)


def picture(name, size):
    width, height = size
    numbers = (made_up(name, width * height * 3) + np.float32(1)) * np.float32(127.5)
    return Image.fromarray(numbers.astype(np.uint8).reshape(height, width, 3))


def digest(numbers):
    """SHA-256 of numbers as they lie in memory."""
    data = np.ascontiguousarray(numbers)
    return torch.tensor(list(hashlib.sha256(data.tobytes()).digest()), dtype=torch.uint8)


def patches(pixels, size):
    """Pixels [pictures, channels, height, width] as patches, channel after channel."""
    count, channels, height, width = pixels.shape
    parts = pixels.reshape(count, channels, height // size, size, width // size, size)
    return parts.permute(0, 2, 4, 1, 3, 5)


def load(name, folder):
    model, told = getattr(transformers, name).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    problems = [told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")]
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    assert not set().union(*map(set, problems)) - tied, problems
    return model.eval()


def resized():
    """Pictures that Pillow resizes with the filters in use."""
    goldens = {}
    filters = {"Bilinear": Image.BILINEAR, "Bicubic": Image.BICUBIC, "Lanczos3": Image.LANCZOS}
    for name, filter in filters.items():
        for width, height in [(75, 20), (31, 90), (150, 101), (1, 1), (75, 50)]:
            pixels = np.asarray(picture("resized", WIDE).resize((width, height), filter))
            goldens[f"{name} {width} {height}"] = digest(pixels)
    return goldens


def smolvlm(folder):
    model = load("SmolVLMForConditionalGeneration", folder)
    processor = SmolVLMImageProcessorPil.from_pretrained(folder)
    config = model.config

    def see(image, splits):
        seen = processor(image, do_image_splitting=splits, return_row_col_info=True, return_tensors="pt")
        features = model.model.get_image_features(seen["pixel_values"], seen["pixel_attention_mask"])
        features = torch.cat(list(features.pooler_output), 0).flatten(0, -2)
        side = config.vision_config.image_size // config.vision_config.patch_size // config.scale_factor
        text = get_image_prompt_string(
            seen["rows"][0][0], seen["cols"][0][0], side**2, "<fake_token_around_image>", "<image>", "<global-img>")
        pixels = patches(seen["pixel_values"][0], config.vision_config.patch_size)
        return pixels, features, text, {
            "pixel_values": seen["pixel_values"], "pixel_attention_mask": seen["pixel_attention_mask"]}

    return model, {"high": lambda image: see(image, True), "normal": lambda image: see(image, False)}


def qwen(folder, name):
    model = load(name, folder)
    processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
    size = model.config.vision_config.patch_size

    def see(image):
        seen = processor(image, return_tensors="pt")
        features = model.model.get_image_features(seen["pixel_values"], seen["image_grid_thw"])
        levels = [features.pooler_output, *getattr(features, "deepstack_features", [])]
        embeddings = torch.cat([torch.cat(list(level), 0) for level in levels], 1)
        # The first of two frames.
        pixels = seen["pixel_values"].reshape(-1, 3, 2, size, size)[:, :, 0]
        return pixels, embeddings, "<|image_pad|>" * len(embeddings), {
            "pixel_values": seen["pixel_values"], "image_grid_thw": seen["image_grid_thw"]}

    return model, {"high": see}


def gemma4(folder):
    model = load("Gemma4ForConditionalGeneration", folder)
    processor = Gemma4ImageProcessorPil.from_pretrained(folder)
    size = model.config.vision_config.patch_size
    names = SimpleNamespace(boi_token="<|image>", image_token="<|image|>", eoi_token="<image|>")

    def see(image, budget):
        seen = processor(image, max_soft_tokens=budget, return_tensors="pt")
        features = model.model.get_image_features(seen["pixel_values"], seen["image_position_ids"])
        features = torch.cat(list(features.pooler_output), 0)
        real = seen["pixel_values"][0][seen["image_position_ids"][0, :, 0] >= 0]
        pixels = 2 * (real.float() - 0.5).reshape(-1, size, size, 3).permute(0, 3, 1, 2)
        text = Gemma4Processor.replace_image_token(names, seen, 0)
        return pixels, features, text, {
            "pixel_values": seen["pixel_values"].float(), "image_position_ids": seen["image_position_ids"]}

    return model, {
        "normal": lambda image: see(image, 280), "high": lambda image: see(image, 1120), "low": lambda image: see(image, 70)}


def mistral3(folder):
    model = load("Mistral3ForConditionalGeneration", folder)
    processor = PixtralImageProcessorPil.from_pretrained(folder)
    size, merge = model.config.vision_config.patch_size, model.config.spatial_merge_size

    def see(image):
        seen = processor(image, patch_size={"height": size * merge, "width": size * merge}, return_tensors="pt")
        inputs = {"pixel_values": seen["pixel_values"].float(), "image_sizes": seen["image_sizes"]}
        features = torch.cat(list(model.model.get_image_features(**inputs).pooler_output), 0)
        # As PixtralProcessor.replace_image_token, whose module needs torchvision.
        height, width = (int(side) // (size * merge) for side in seen["image_sizes"][0])
        text = "[IMG_BREAK]".join(["[IMG]" * width] * height) + "[IMG_END]"
        return patches(inputs["pixel_values"], size), features, text, inputs

    return model, {"high": see}


# Special tokens around embeddings, by their distance from the token of pictures.
SPECIAL = {"<|image_pad|>": 0, "<|image|>": 0, "<|image>": 1, "<image|>": 2, "[IMG]": 0, "[IMG_BREAK]": 1, "[IMG_END]": 2}
# Details of which the embeddings are too many to be kept.
ONLY_TEXT = {("gemma4", "normal"), ("gemma4", "high")}
MODELS = {
    "smolvlm": smolvlm,
    "qwen3_5": lambda folder: qwen(folder, "Qwen3_5ForConditionalGeneration"),
    "qwen3_vl": lambda folder: qwen(folder, "Qwen3VLForConditionalGeneration"),
    "gemma4": gemma4,
    "mistral3": mistral3,
}


def main():
    goldens = resized()
    for label, load_model in MODELS.items():
        model, details = load_model(Path(sys.argv[1]) / label)
        with torch.no_grad():
            for detail, see in details.items():
                for shape, size in {"wide": WIDE, "square": SQUARE}.items():
                    pixels, features, text, inputs = see(picture(shape, size))
                    name = f"{label} {shape} {detail}"
                    assert pixels.dtype == torch.float32
                    goldens[f"{name} pixels"] = digest(pixels.numpy())
                    goldens[f"{name} text"] = torch.tensor(list(text.encode()), dtype=torch.uint8)
                    if (label, detail) not in ONLY_TEXT:
                        goldens[f"{name} embeddings"] = features.contiguous()
            # The last picture seen is the square one at the last detail.
            image = model.config.image_token_id
            special = [image + SPECIAL[name] for name in re.findall("|".join(map(re.escape, SPECIAL)), text)]
            tokens = BEFORE + (special or [image] * len(features)) + AFTER
            kinds = torch.tensor([[int(token == image) for token in tokens]], dtype=torch.int32)
            extra = {"mm_token_type_ids": kinds} if label.startswith("qwen") else {}
            logits = model(torch.tensor([tokens]), use_cache=False, **inputs, **extra).logits[0]
            goldens[f"{label} logits"] = logits.contiguous()
            goldens[f"{label} tokens"] = torch.tensor(tokens, dtype=torch.int64)
            plain = model(torch.tensor([tokens]), use_cache=False).logits[0]
            print(label, "logits up to", logits.abs().max().item(), "and without the picture", (logits - plain).abs().max().item())
    save_file(goldens, HERE / "vision.safetensors")


if __name__ == "__main__":
    main()
