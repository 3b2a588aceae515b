"""Ids: UUIDv7 inside, 26 lower-case Crockford characters everywhere outside the database."""

from __future__ import annotations

import secrets
import threading
import time
from uuid import UUID

from lastcall.errors import Invalid

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o or u, so that an id survives being read aloud."""

LENGTH = 26
"""Characters of an encoded id: 128 bits in steps of five, the first character carrying only three of them."""

_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_TAIL_BITS = 74
_lock = threading.Lock()
_last_millisecond = 0
_last_tail = 0


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562) that sorts after every id this process made before, even within one millisecond."""
    global _last_millisecond, _last_tail
    with _lock:
        millisecond = time.time_ns() // 1_000_000
        if millisecond > _last_millisecond:
            # The top bit stays free, so that a millisecond never runs out of increments.
            tail = secrets.randbits(_TAIL_BITS - 1)
        else:
            millisecond = _last_millisecond
            tail = _last_tail + 1 + secrets.randbits(32)
            if tail >> _TAIL_BITS:
                millisecond += 1
                tail = secrets.randbits(_TAIL_BITS - 1)
        _last_millisecond, _last_tail = millisecond, tail
    high, low = tail >> 62, tail & ((1 << 62) - 1)
    return UUID(int=(millisecond << 80) | (0x7 << 76) | (high << 64) | (0b10 << 62) | low)


def encode_id(value: UUID) -> str:
    """The form that pages, API and commands show. Sorts like the id itself."""
    number = value.int
    characters = [ALPHABET[(number >> shift) & 31] for shift in range(5 * (LENGTH - 1), -1, -5)]
    return "".join(characters)


def decode_id(text: str) -> UUID:
    """The id that ``text`` spells, in either case. Raises ``Invalid`` for anything else."""
    # The length first: a number of as many characters as somebody sent takes seconds.
    lowered = text.lower() if len(text) == LENGTH else ""
    if lowered and all(character in _VALUES for character in lowered):
        number = 0
        for character in lowered:
            number = (number << 5) | _VALUES[character]
        if number >> 128 == 0:
            return UUID(int=number)
    raise Invalid(
        "id_invalid",
        "This is not a Lastcall id.",
        advice="Copy the whole id: it has 26 letters and digits.",
    )
