#!/usr/bin/env python3
"""Writes vision.safetensors: what transformers makes of pictures with the models of tests/kit/random_vision.rs, in 32
bits, which tests/engine/vision.rs compares with.

    python -m venv venv && venv/bin/pip install torch transformers==5.24.0 safetensors pillow
    cargo run -p foretoken-tests --example write_vision -- FOLDER
    venv/bin/python tests/goldens/vision.py FOLDER

For each model, picture and detail: the normalised pixels, the embeddings, and the text around them. For each model the
logits of a text with a picture in it. Also pictures that Pillow resized, byte by byte.
"""
import sys
from pathlib import Path

import numpy as np
import torch
from made_up import made_up
from PIL import Image
from safetensors.torch import save_file
from transformers import Qwen3_5ForConditionalGeneration, SmolVLMForConditionalGeneration
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


def resized():
    """Pictures that Pillow resizes with the filters in use."""
    goldens = {}
    filters = {"Bilinear": Image.BILINEAR, "Bicubic": Image.BICUBIC, "Lanczos3": Image.LANCZOS}
    for name, filter in filters.items():
        for width, height in [(75, 20), (31, 90), (150, 101), (1, 1), (75, 50)]:
            pixels = np.asarray(picture("resized", WIDE).resize((width, height), filter))
            goldens[f"{name} {width} {height}"] = torch.from_numpy(pixels.copy())
    return goldens


def smolvlm(folder):
    model = SmolVLMForConditionalGeneration.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    processor = SmolVLMImageProcessorPil.from_pretrained(folder)

    def see(image, splits):
        seen = processor(image, do_image_splitting=splits, return_row_col_info=True, return_tensors="pt")
        features = model.model.get_image_features(seen["pixel_values"], seen["pixel_attention_mask"])
        features = torch.cat(list(features.pooler_output), 0).flatten(0, -2)
        sequence = (model.config.vision_config.image_size // model.config.vision_config.patch_size) ** 2 // model.config.scale_factor ** 2
        text = get_image_prompt_string(
            seen["rows"][0][0], seen["cols"][0][0], sequence, "<fake_token_around_image>", "<image>", "<global-img>")
        return seen["pixel_values"][0], features, text, {
            "pixel_values": seen["pixel_values"], "pixel_attention_mask": seen["pixel_attention_mask"]}

    return model, {"normal": lambda image: see(image, False), "high": lambda image: see(image, True)}


def qwen(folder):
    model = Qwen3_5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    processor = Qwen2VLImageProcessorPil.from_pretrained(folder)

    def see(image):
        seen = processor(image, return_tensors="pt")
        features = model.model.get_image_features(seen["pixel_values"], seen["image_grid_thw"]).pooler_output
        features = torch.cat(features, 0)
        return seen["pixel_values"], features, "<|image_pad|>" * len(features), {
            "pixel_values": seen["pixel_values"], "image_grid_thw": seen["image_grid_thw"]}

    return model, {"high": see}


def main():
    goldens = resized()
    for label, load in {"smolvlm": smolvlm, "qwen3_5": qwen}.items():
        model, details = load(Path(sys.argv[1]) / label)
        with torch.no_grad():
            for detail, see in details.items():
                for shape, size in {"wide": WIDE, "square": SQUARE}.items():
                    pixels, features, text, inputs = see(picture(shape, size))
                    name = f"{label} {shape} {detail}"
                    goldens[f"{name} pixels"] = pixels.contiguous()
                    goldens[f"{name} embeddings"] = features.contiguous()
                    goldens[f"{name} text"] = torch.tensor(list(text.encode()), dtype=torch.uint8)
            image = model.config.image_token_id
            tokens = BEFORE + [image] * len(features) + AFTER
            kinds = torch.tensor([[int(token == image) for token in tokens]], dtype=torch.int32)
            extra = {"mm_token_type_ids": kinds} if label == "qwen3_5" else {}
            # The last picture seen is the square one at the highest detail.
            if label == "smolvlm":
                _, features, _, inputs = details["normal"](picture("square", SQUARE))
                tokens = BEFORE + [image] * len(features) + AFTER
            logits = model(torch.tensor([tokens]), use_cache=False, **inputs, **extra).logits[0]
            goldens[f"{label} logits"] = logits.contiguous()
            plain = model(torch.tensor([tokens]), use_cache=False).logits[0]
            print(label, "logits up to", logits.abs().max().item(), "and without the picture", (logits - plain).abs().max().item())
    save_file(goldens, HERE / "vision.safetensors")


if __name__ == "__main__":
    main()
