"""Time-based one-time passwords as VRChat's second factor uses them (RFC 6238: SHA-1, 30 seconds, six
digits)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import datetime

from lastcall.errors import Invalid

STEP = 30
"""Seconds that one code is good for."""


def totp(secret: str, at: datetime) -> str:
    """The code for the base32 ``secret`` at this moment. Raises ``Invalid`` for a secret that is no
    base32."""
    plain = secret.replace(" ", "").upper()
    try:
        key = base64.b32decode(plain + "=" * (-len(plain) % 8))
    except binascii.Error as error:
        raise Invalid(
            "totp_secret",
            "The two-factor secret is not valid base32.",
            advice="Copy the key that VRChat shows beside the QR code.",
            field="totp_secret",
        ) from error
    counter = int(at.timestamp()) // STEP
    digest = hmac.new(key, counter.to_bytes(8, "big"), hashlib.sha1).digest()
    start = digest[-1] & 0x0F
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"
