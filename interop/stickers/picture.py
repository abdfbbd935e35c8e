"""Puts the pictures of docs/stickers.md together: picture.py FOLDER DOCS

FOLDER is what STAMPEDE_STICKER_FILES named. DOCS gets stickers-static.png and stickers-animated.png.
"""

import gzip, os, sys

from PIL import Image, ImageDraw
from rlottie_python import LottieAnimation

CELL, GAP, LABEL = 250, 14, 22
NAMES = ["classic", "sunset", "neon", "comic", "ink", "mint", "bubble", "ribbon"]
FRAMES = [0.0, 0.15, 0.25, 0.35, 0.45, 0.6]


def background(width, height):
    """A chat: soft green, with a slow change from top to bottom."""
    sheet = Image.new("RGBA", (width, height))
    draw = ImageDraw.Draw(sheet)
    for y in range(height):
        part = y / height
        draw.line([(0, y), (width, y)], fill=(round(206 - 24 * part), round(221 - 14 * part), round(190 + 6 * part), 255))
    return sheet


def put(sheet, sticker, left, top, side):
    factor = side / 512
    small = sticker.resize((max(1, round(sticker.width * factor)), max(1, round(sticker.height * factor))), Image.LANCZOS)
    sheet.alpha_composite(small, (left + (side - small.width) // 2, top + (side - small.height) // 2))


def frame(path, part):
    animation = LottieAnimation.from_data(gzip.decompress(open(path, "rb").read()).decode())
    number = int(part * (animation.lottie_animation_get_totalframe() - 1))
    raw = animation.lottie_animation_render(number)
    # rlottie's colours are multiplied with their alpha, and blue comes first.
    blue, green, red, alpha = Image.frombytes("RGBA", (512, 512), raw).split()
    return Image.frombytes("RGBa", (512, 512), Image.merge("RGBA", (red, green, blue, alpha)).tobytes()).convert("RGBA")


def grid(rows, path, side):
    width = max(len(row) for _, row in rows) * (side + GAP) + GAP
    height = len(rows) * (side + GAP + LABEL) + GAP
    sheet = background(width, height)
    draw = ImageDraw.Draw(sheet)
    for number, (label, row) in enumerate(rows):
        top = GAP + number * (side + GAP + LABEL)
        draw.text((GAP + 4, top), label, fill=(60, 80, 60, 255))
        for place, sticker in enumerate(row):
            put(sheet, sticker, GAP + place * (side + GAP), top + LABEL, side)
    sheet.convert("RGB").quantize(256).save(path, optimize=True)


def main():
    folder, docs = sys.argv[1:3]
    shown = lambda index, name, text, kind: os.path.join(folder, f"shown-{index}-{text}-{name}.{kind}")
    names = list(enumerate(NAMES))
    still = [[Image.open(shown(i, name, text, "webp")).convert("RGBA") for text in range(3)] for i, name in names]
    # Two variants in a row, three texts each.
    pairs = [(f"{NAMES[i]}, {NAMES[i + 1]}", still[i] + still[i + 1]) for i in range(0, 8, 2)]
    grid(pairs, os.path.join(docs, "stickers-static.png"), CELL)
    moving = [(name, [frame(shown(i, name, 0, "tgs"), part) for part in FRAMES]) for i, name in names]
    grid(moving, os.path.join(docs, "stickers-animated.png"), 150)


if __name__ == "__main__":
    main()
