"""Stickers as other people's programs see them.

    check.py FOLDER            every .tgs, .webp and .png of a folder; ends with 1 if there is a complaint
    check.py FOLDER refusals   the same, and shows first that the validators refuse what breaks the rules

| files | asked | what must hold |
|---|---|---|
| TGS | lottie's TgsValidator, every severity | no complaint |
| TGS | rlottie, every frame | 512 × 512, 60 frames a second, at most 3 s, ink in every sticker, none on the border of any frame, first = last |
| TGS | rlottie, each layer with strokes alone | the strokes are seen |
| WEBP | webpinfo, Pillow | no error, lossless with alpha, one side 512 and the other at most |
| PNG | Pillow | the same sides, alpha |

The files are written by the tests of crates/sticker: STAMPEDE_STICKER_FILES names the folder.
"""

import copy, gzip, json, multiprocessing, os, subprocess, sys, tempfile
from concurrent.futures import ProcessPoolExecutor

from lottie.exporters.tgs_validator import Severity, TgsValidator
from lottie.objects.animation import Animation
from PIL import Image
from rlottie_python import LottieAnimation

SIDE = 512
MOST_TGS, MOST_STATIC = 64 * 1024, 512 * 1024


def validated(document, size):
    """What lottie says of a document."""
    validator = TgsValidator(Severity.Note)
    validator.check_size(size)
    validator(Animation.load(document))
    return [str(error) for error in validator.errors]


def border(frame):
    """Whether a BGRA frame has ink on its border."""
    row = SIDE * 4
    return any(frame[3:row:4]) or any(frame[3 - row :: 4]) or any(frame[3::row]) or any(frame[row - 1 :: row])


def played(document):
    """What is wrong with a document when rlottie plays it."""
    wrong = []
    animation = LottieAnimation.from_data(json.dumps(document))
    frames, rate = animation.lottie_animation_get_totalframe(), animation.lottie_animation_get_framerate()
    if animation.lottie_animation_get_size() != (SIDE, SIDE):
        wrong.append(f"size {animation.lottie_animation_get_size()}")
    if rate != 60:
        wrong.append(f"{rate} frames a second")
    if frames > 180 or animation.lottie_animation_get_duration() > 3.0:
        wrong.append(f"{frames} frames, {animation.lottie_animation_get_duration()} s")
        return wrong
    first = last = None
    for number in range(frames):
        last = animation.lottie_animation_render(number)
        first = last if first is None else first
        if border(last):
            wrong.append(f"ink on the border of frame {number}")
            break
    else:
        if not any(first[3::4]):
            wrong.append("nothing is seen in the first frame")
        if first != last:
            wrong.append("the first frame is not the last")
    return wrong


def without_fills(shapes):
    kept = [shape for shape in shapes if shape["ty"] not in ("fl", "gf")]
    return [dict(shape, it=without_fills(shape["it"])) if shape["ty"] == "gr" else shape for shape in kept]


def stroked(document):
    """Layers whose strokes rlottie does not draw: it gives up on a whole stroke if it dislikes one of its paths."""
    wrong = []
    for number, layer in enumerate(document["layers"]):
        if any(shape["ty"] == "st" for shape in layer["shapes"]):
            alone = dict(document, layers=[dict(layer, shapes=without_fills(layer["shapes"]))])
            animation = LottieAnimation.from_data(json.dumps(alone))
            if not any(animation.lottie_animation_render(0)[3::4]):
                wrong.append(f"no stroke is seen in layer {number}")
    return wrong


def tgs(path):
    raw = open(path, "rb").read()
    document = json.loads(gzip.decompress(raw))
    return validated(document, len(raw)) + played(document) + stroked(document)


def still(path):
    with Image.open(path) as image:
        image.load()
        sides, mode = image.size, image.mode
        wrong = [] if mode == "RGBA" else [f"mode {mode}"]
    if max(sides) != SIDE:
        wrong.append(f"sides {sides}")
    if os.path.getsize(path) > MOST_STATIC:
        wrong.append("too large")
    return wrong


def webp(path):
    told = subprocess.run(["webpinfo", path], capture_output=True, text=True)
    wrong = still(path)
    if told.returncode or "No error detected" not in told.stdout or "Lossless" not in told.stdout:
        wrong.append(f"webpinfo: {told.stdout} {told.stderr}")
    return wrong


CHECKS = {".tgs": tgs, ".webp": webp, ".png": still}


def check(path):
    try:
        return path, CHECKS[os.path.splitext(path)[1]](path)
    except Exception as error:  # a file that cannot be read is a complaint about that file
        return path, [f"{type(error).__name__}: {error}"]


def broken(document):
    """Documents that break one rule each."""
    for name, change in {
        "24 frames a second": lambda it: it.update(fr=24),
        "600 frames": lambda it: it.update(op=600),
        "500 pixels": lambda it: it.update(w=500, h=500),
        "a text layer": lambda it: it["layers"].append(text_layer(it)),
    }.items():
        changed = copy.deepcopy(document)
        change(changed)
        yield name, changed


def text_layer(document):
    layer = copy.deepcopy(document["layers"][0])
    layer.pop("shapes")
    style = {"s": 40, "f": "Arial", "t": "Hi", "j": 0, "tr": 0, "lh": 48, "ls": 0, "fc": [0, 0, 0]}
    layer.update(ty=5, t={"d": {"k": [{"s": style, "t": 0}]}, "p": {}, "m": {"g": 1, "a": {"a": 0, "k": [0, 0]}}, "a": []})
    return layer


def refusals(files):
    """The checks can fail: each broken document is refused, a file that is too large and a damaged picture as well."""
    some = next(file for file in files if file.endswith(".tgs"))
    document = json.loads(gzip.decompress(open(some, "rb").read()))
    missed = [name for name, changed in broken(document) if not validated(changed, 1000)]
    if not validated(document, MOST_TGS + 1):
        missed.append("65 kB")
    moved = copy.deepcopy(document)
    for layer in moved["layers"]:
        layer["ks"]["p"] = {"a": 0, "k": [60, 60]}
    if not played(moved):
        missed.append("ink beyond the canvas")
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "cut.webp")
        whole = open(next(file for file in files if file.endswith(".webp")), "rb").read()
        open(picture, "wb").write(whole[: len(whole) // 2])
        if not check(picture)[1]:
            missed.append("half a picture")
    return missed


def main():
    folder = sys.argv[1]
    files = sorted(entry.path for entry in os.scandir(folder) if os.path.splitext(entry.name)[1] in CHECKS)
    if not any(file.endswith(".tgs") for file in files) or not any(file.endswith(".webp") for file in files):
        sys.exit(f"{folder} has no stickers; write some: STAMPEDE_STICKER_FILES={folder} cargo nextest run -p stampede-sticker")
    if "refusals" in sys.argv[2:]:
        missed = refusals(files)
        if missed:
            sys.exit(f"the validators accept what they must refuse: {', '.join(missed)}")
        print("the validators refuse 24 frames a second, 600 frames, a text layer, 500 pixels, 65 kB, ink beyond the canvas, half a picture")
    complaints = 0
    # rlottie has threads of its own, which a forked process would wait for in vain.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for path, wrong in pool.map(check, files, chunksize=8):
            complaints += bool(wrong)
            for reason in wrong:
                print(f"{os.path.basename(path)}: {reason}")
    print(f"{len(files)} stickers, {complaints} with complaints")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
