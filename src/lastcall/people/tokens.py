"""Random tokens that are shown once and stored as a hash."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_BYTES = 32  # of randomness; nothing can be guessed, so a fast hash is enough to store it


def new_token() -> str:
    """A token that fits into a link: 43 characters of URL-safe base64."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_hash(token: str) -> bytes:
    """What is stored and looked up instead of the token (SHA-256, 32 bytes)."""
    return hashlib.sha256(token.encode()).digest()
