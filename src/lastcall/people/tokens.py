"""Random tokens that are shown once and stored as a hash, and the codes that go with them."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from lastcall.db.ids import ALPHABET

TOKEN_BYTES = 32  # of randomness; nothing can be guessed, so a fast hash is enough to store it
CODE_LENGTH = 8  # Crockford characters: 40 bits, of which nobody may try more than a handful
_HEARD_WRONG = str.maketrans({"o": "0", "i": "1", "l": "1", "-": None, " ": None})


def new_token() -> str:
    """A token that fits into a link: 43 characters of URL-safe base64."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_hash(token: str) -> bytes:
    """What is stored and looked up instead of the token (SHA-256, 32 bytes)."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def browser_hash(key: str) -> bytes:
    """What a link or a flow remembers of the browser that asked (32 bytes). ``key`` is a secret of that browser
    alone: its form cookie, or its session's token."""
    return hmac.digest(key.encode(), b"browser", "sha256")


def code_of(token: str) -> str:
    """The code to type instead of opening the link: whoever has the token can show it, nobody can go back."""
    number = int.from_bytes(hmac.digest(token.encode(), b"code", "sha256")[:5], "big")
    return "".join(ALPHABET[(number >> shift) & 31] for shift in range(35, -1, -5))


def code_hash(code: str, key: str) -> bytes:
    """What is stored instead of the code (32 bytes). The browser's ``key`` is not in the database, so that the
    few codes there are cannot be tried against a copy of it."""
    return hmac.digest(key.encode(), b"code " + read_code(code).encode(errors="surrogatepass"), "sha256")


def read_code(text: str) -> str:
    """A code as a person typed it: any case, with spaces or hyphens, ``o`` for zero, ``i`` and ``l`` for one."""
    return text.strip().lower().translate(_HEARD_WRONG)


def shown_code(code: str) -> str:
    """A code for a person's eyes: ``AB12-CD34``."""
    return f"{code[:4]}-{code[4:]}".upper()
