"""An authenticator without a body: it keeps keys and signs what it is asked to, and what it should not."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import encode_cbor

USER_PRESENT, USER_VERIFIED, HAS_KEY = 0x01, 0x04, 0x40


def text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def data(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "==")


@dataclass
class Authenticator:
    """``count`` is what it says next, raised by ``counts``; a passkey kept in step over devices says 0 for ever."""

    origin: str = "http://localhost:8420"
    counts: int = 0
    count: int = 0
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    user_handle: bytes = b""

    def create(self, options: dict[str, Any], **lies: Any) -> str:
        """The answer to ``navigator.credentials.create``, as the page sends it."""
        self.user_handle = data(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        attested = bytes(16) + len(self.credential_id).to_bytes(2) + self.credential_id + encode_cbor(cose)
        signed = self._signed(options["rp"]["id"], HAS_KEY, lies) + attested
        client_data = self._client_data("webauthn.create", options, lies)
        statement = {"fmt": "none", "attStmt": {}, "authData": signed}
        return self._answer(clientDataJSON=text(client_data), attestationObject=text(encode_cbor(statement)))

    def get(self, options: dict[str, Any], **lies: Any) -> str:
        """The answer to ``navigator.credentials.get``, as the page sends it."""
        signed = self._signed(options["rpId"], 0, lies)
        client_data = self._client_data("webauthn.get", options, lies)
        key = lies.get("key", self.key)
        mark = key.sign(signed + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            clientDataJSON=text(client_data),
            authenticatorData=text(signed),
            signature=text(mark),
            userHandle=text(lies.get("user_handle", self.user_handle)),
        )

    def _signed(self, party: str, more: int, lies: dict[str, Any]) -> bytes:
        self.count += self.counts
        flags = lies.get("flags", USER_PRESENT | USER_VERIFIED) | more
        place = hashlib.sha256(lies.get("party", party).encode()).digest()
        return place + bytes([flags]) + self.count.to_bytes(4)

    def _client_data(self, kind: str, options: dict[str, Any], lies: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return json.dumps(said | lies.get("client_data", {})).encode()

    def _answer(self, **response: str) -> str:
        name = text(self.credential_id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})
