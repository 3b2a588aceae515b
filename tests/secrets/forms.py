"""The forms in which a secret could stand somewhere, and where it does."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from urllib.parse import quote


def inside_base64(secret: bytes) -> Iterator[str]:
    """What the base64 of any text that holds ``secret`` holds, for each of the three places where it may begin."""
    for before in range(3):
        begin = -(-before * 8 // 6)  # the first digits still hold bits of what is before it
        whole = (before + len(secret)) * 8 // 6  # and the last one bits of what follows
        for digits in (base64.b64encode, base64.urlsafe_b64encode):
            yield digits(bytes(before) + secret).decode()[begin:whole]


def forms_of(secret: str) -> dict[str, str]:
    """By name; what is written with capitals or small letters alike is in small ones."""
    said = secret.encode()
    found = {
        "as it is": secret,
        "hex": said.hex(),
        "percent": quote(secret, safe=""),
        "all percent": "".join(f"%{byte:02x}" for byte in said),
    }
    found |= {f"base64 {number}": form for number, form in enumerate(inside_base64(said))}
    try:
        raw = base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))
    except (binascii.Error, ValueError):
        return found
    if len(raw) >= 16:  # a token of random bytes: they themselves
        found |= {
            "its bytes in hex": raw.hex(),
            "its bytes in base64": base64.b64encode(raw).decode().rstrip("="),
        }
    return found


def seen(secrets: Mapping[str, str], sinks: Mapping[str, str]) -> list[str]:
    """Which secret stands where, in which form."""
    found = []
    small = {name: text.lower() for name, text in sinks.items()}
    for what, secret in secrets.items():
        for form, text in forms_of(secret).items():
            # Only base64 means another thing in other letters.
            places = sinks if "base64" in form else small
            wanted = text if "base64" in form else text.lower()
            found += [f"{what} in {place} ({form})" for place, held in places.items() if wanted in held]
    return found
