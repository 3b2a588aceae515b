"""What a log line may not show: anything that lets its reader act as somebody else.

The house hands nothing secret to a logger. This is the second line of defence, over the finished text of each
line: an address in a library's message, the text of an error, a path that holds a token.
"""

from __future__ import annotations

import re

HIDDEN = "…"

_AFTER_PATH = r"(?<=/sign-in/)|(?<=/invites/)"
_SECRETS = (
    # A path whose last part is a token, whatever the token looks like.
    re.compile(rf"(?:{_AFTER_PATH})[^/\s\"'?&#<>\\]{{12,}}"),
    # Tokens and keys with our prefixes.
    re.compile(r"(?<=\blc_)[A-Za-z0-9_-]{16,}|(?<=\blck_)[A-Za-z0-9_-]{16,}"),
    # 32 random bytes in URL-safe base64: links, sessions, form keys. Capitals and small letters both, so that
    # names of functions and hashes in hexadecimal stay readable.
    re.compile(
        r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]*[A-Z])(?=[A-Za-z0-9_-]*[a-z])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"
    ),
    re.compile(r"(?i)(?<=\bbearer )[^\s\"',]+|(?<=\bbasic )[A-Za-z0-9+/]{8,}=*"),
    # The password in an address.
    re.compile(r"(?<=://)[^/\s\"'@:]*:[^/\s\"'@]+(?=@)"),
    re.compile(r"(?i)(?<=[?&]code=)[^&\s\"']+|(?<=[?&]state=)[^&\s\"']+|(?<=[?&]token=)[^&\s\"']+"),
)


def redact(text: str) -> str:
    """``text`` with every secret in it replaced by an ellipsis."""
    for secret in _SECRETS:
        text = secret.sub(HIDDEN, text)
    return text
