"""Tokens as forgers and careless readers make them: the kinds of crates/model/tests/it/tricks.rs, for verifiers in other
languages."""

import base64
import random

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
ORDER = 2**252 + 27742317777372353535851937790883648493
SMALL_ORDER = [
    bytes(32),
    b"\x01" + bytes(31),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    b"\xec" + b"\xff" * 30 + b"\x7f",
]


def encoded(token):
    return base64.b32encode(bytes(token)).decode().rstrip("=")


def spelling(dice, text):
    """The same token in another spelling."""
    at = dice.randrange(len(text))
    head, own, tail = text[:at], text[at], text[at + 1 :]
    return dice.choice([
        text.lower(),
        head + own.lower() + tail,
        head + dice.choice([" ", "\n", "\r", "\t", "\0", "-", "=", "\u200b"]) + own + tail,
        text + "=" * dice.randint(1, 8),
        text + "\n",
        " " + text,
        text.replace("O", "0", 1).replace("I", "1", 1).replace("B", "8", 1),
        head + chr(ord(own) + 0xFEE0) + tail,
        text.replace("A", "\u0410", 1),
        text[:-1] + chr(ord(text[-1]) + 1),
        base64.urlsafe_b64encode(base64.b32decode(text + "===")).decode(),
        base64.b32decode(text + "===").hex(),
        text[:at],
        text + dice.choice(ALPHABET),
        head + own + own + tail,
    ])


def forgery(dice, text, other):
    """A token in the right spelling whose bytes were changed."""
    token = bytearray(base64.b32decode(text + "==="))
    s = int.from_bytes(token[61:], "little")

    def put(at, value):
        token[at : at + len(value)] = value

    def flip():
        for _ in range(dice.randint(1, 4)):
            token[dice.randrange(93)] ^= 1 << dice.randrange(8)

    def exchange():
        one, two = dice.sample([17, 21, 25], 2)
        first, second = bytes(token[one : one + 4]), bytes(token[two : two + 4])
        put(one, second), put(two, first)

    def mixed():
        at = dice.randrange(93)
        put(at, base64.b32decode(other + "===")[at:])

    dice.choice([
        flip,
        exchange,
        mixed,
        lambda: put(17, dice.randrange(5).to_bytes(4, "big")),
        lambda: put(21, dice.randrange(200).to_bytes(4, "big")),
        lambda: put(25, dice.randrange(4).to_bytes(4, "big")),
        lambda: put(29, dice.choice(SMALL_ORDER)),
        lambda: put(29, dice.choice(SMALL_ORDER) + bytes(32)),
        lambda: put(61, (s + ORDER).to_bytes(32, "little")),
        lambda: put(61, (ORDER - s).to_bytes(32, "little")),
        lambda: put(29, bytes(token[61:]) + bytes(token[29:61])),
        lambda: put(29, dice.randbytes(64)),
        lambda: put(0, bytes([dice.randrange(256)])),
    ])()
    return encoded(token)


def mutated(valid, count, seed=1):
    """So many texts of which none is a valid token; three of four have the right spelling."""
    dice, found = random.Random(seed), []
    while len(found) < count:
        text = dice.choice(valid)
        new = spelling(dice, text) if dice.random() < 0.25 else forgery(dice, text, dice.choice(valid))
        if new not in valid:
            found.append(new)
    return found
