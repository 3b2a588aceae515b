"""What a log line may not show: anything that lets its reader act as somebody else.

The house hands nothing secret to a logger. This is the second line of defence, over the finished text of each
line: an address in a library's message, the text of an error, a path that holds a token.
"""

from __future__ import annotations

import re

HIDDEN = "…"

_BEFORE = r"(?P<kept>^|[^A-Za-z0-9_-]|\x1b\[[0-9;]*m)"
"""Where a word begins: at a terminal that may be right after the colour of what follows."""

_SECRETS = (
    # A path whose next part is a token, whatever the token looks like. Our own pages have shorter names there.
    re.compile(r"(?P<kept>/sign-in/|/invites/)[^/\s\"'?&#<>\\\x1b]{12,}"),
    # Tokens and keys with our prefixes.
    re.compile(_BEFORE + r"lck?_[A-Za-z0-9_-]{16,}", re.MULTILINE),
    # 32 random bytes in URL-safe base64: links, sessions, form keys. Capitals and small letters both, so that
    # names of functions and hashes in hexadecimal stay readable.
    re.compile(
        _BEFORE + r"(?=[a-z0-9_-]*[A-Z])(?=[A-Z0-9_-]*[a-z])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", re.MULTILINE
    ),
    re.compile(r"(?P<kept>\b(?:bearer|basic) )[^\s\"',\x1b]+", re.IGNORECASE),
    # User and password in an address.
    re.compile(r"(?P<kept>://)[^/\s\"'@:]*:[^/\s\"'@]+(?=@)"),
    # Cookies: what an answer sets, written as a header or as the pair of a list; those of a VRChat session wherever.
    re.compile(
        r"(?P<kept>\bset-cookie\b[^A-Za-z0-9]{1,6}(?:b\\?['\"])?[^\s=;,\"'\x1b]+=)[^\s;\"'\\\x1b]+",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<kept>\b(?:auth|twoFactorAuth)=)[^\s;&\"'\\\x1b]+", re.IGNORECASE),
    # What a provider sends back with somebody who signs in.
    re.compile(r"(?P<kept>[?&](?:code|state|token)=)[^&\s\"'\x1b]+", re.IGNORECASE),
)


def redact(text: str) -> str:
    """``text`` with every secret in it replaced by an ellipsis."""
    for secret in _SECRETS:
        text = secret.sub(rf"\g<kept>{HIDDEN}", text)
    return text
