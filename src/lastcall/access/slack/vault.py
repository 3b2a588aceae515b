"""The key with which tokens of other services are encrypted before they reach the database."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lastcall.errors import Unavailable

KEY_FILE = "slack.key"
KEY_BYTES = 32
NONCE_BYTES = 12  # NIST SP 800-38D


class Vault:
    """Seals and opens with the key in ``home/slack.key`` (mode 0600), which is made when there is none. Raises
    ``Unavailable`` when the file is no such key."""

    def __init__(self, home: Path) -> None:
        self._path = home / KEY_FILE
        key = _key(self._path)
        if len(key) != KEY_BYTES:
            raise Unavailable(
                "slack_key_wrong",
                f"The file {self._path} does not hold a key of {KEY_BYTES} bytes.",
                advice="Put the backup of it back, or delete it and connect Slack again.",
            )
        self._cipher = AESGCM(key)

    def seal(self, club_id: UUID, text: str) -> bytes:
        """The text, encrypted and bound to that club."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text.encode(), club_id.bytes)

    def open(self, club_id: UUID, sealed: bytes) -> str:
        """The text again. Raises ``Unavailable`` when it was sealed with another key or for another club."""
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], club_id.bytes).decode()
        except InvalidTag as error:
            raise Unavailable(
                "slack_token_unreadable",
                f"The token of this club's Slack was not encrypted with the key in {self._path}.",
                advice="Put the backup of the key back, or connect Slack again.",
            ) from error


def _key(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    if not path.exists():
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(made, path)  # of two that begin at once one's key counts
        except FileExistsError:
            pass
        finally:
            made.unlink()
    return path.read_bytes()
