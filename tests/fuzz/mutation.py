"""Mutates encoded frames: single bytes, and the tree of values that they decode to."""

from random import Random
from typing import Any

import msgspec

_BYTES = (0x00, 0x7F, 0x80, 0x90, 0xA2, 0xC0, 0xC1, 0xC4, 0xCF, 0xD9, 0xDB, 0xDD, 0xDF, 0xFF)
_NUMBERS = (0, 1, -1, 2, 255, 256, 1 << 16, 1 << 31, 1 << 32, 1 << 62, 1 << 63, (1 << 64) - 1, -(1 << 63))
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def mutate(body: bytes, random: Random) -> bytes:
    """A body that differs from this one, in bytes or in values."""
    if random.random() < 0.5:
        return mutate_bytes(body, random)
    try:
        return _encode(mutate_tree(_decode(body), random))
    except (msgspec.MsgspecError, ValueError, OverflowError, TypeError):
        return mutate_bytes(body, random)


def mutate_bytes(body: bytes, random: Random) -> bytes:
    """Flip, replace, insert, delete or repeat some bytes."""
    changed = bytearray(body or b"\x00")
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(changed))
        match random.randrange(6):
            case 0:
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                changed[at] = random.choice(_BYTES)
            case 2:
                changed[at:at] = random.randbytes(random.randint(1, 8))
            case 3:
                del changed[at : at + random.randint(1, 8)]
            case 4:
                changed[at:at] = changed[at : at + 16]
            case 5:
                del changed[at + 1 :]
        changed = changed or bytearray(b"\xc1")
    return bytes(changed)


def mutate_tree(value: Any, random: Random) -> Any:
    """Change one value somewhere in a tree of lists and scalars."""
    if isinstance(value, list) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        changed = list(value)
        match random.randrange(8):
            case 0:
                del changed[at]
            case 1:
                changed.insert(at, changed[at])
            case 2:
                other = random.randrange(len(value))
                changed[at], changed[other] = changed[other], changed[at]
            case _:
                changed[at] = mutate_tree(changed[at], random)
        return changed
    if isinstance(value, int) and random.random() < 0.5:
        return value + random.choice((-1, 1, 2, 1 << 31))
    return random.choice((*_NUMBERS, None, True, "a", "zz", b"", b"\xff" * 16, [], [[]], {}, {"a": 1}))
