"""Which addresses mail is sent to: one mailbox, written plainly."""

from __future__ import annotations

import re

from lastcall.errors import Invalid

ADDRESS_LENGTH = 254  # characters, RFC 5321's limit for a forward path
LOCAL_LENGTH = 64  # characters before the @, likewise

_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
"""RFC 5322's dot-atom: no quotes, no comments, nothing that could end a header or a command."""
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


def valid_address(text: str, *, field: str = "email") -> str:
    """The address as mail is sent to it; a domain with other letters in the form that DNS has for it.

    Raises ``Invalid``, naming ``field``, for anything but one plain address: quoted and commented forms, several
    at once, and letters beyond ASCII before the @, which many servers refuse.
    """
    local, at, domain = text.strip().rpartition("@")
    domain = _in_ascii(domain)
    labels = domain.split(".")
    is_whole = at and _LOCAL.fullmatch(local) and all(_LABEL.fullmatch(label) for label in labels)
    if not is_whole or len(local) > LOCAL_LENGTH or len(local) + 1 + len(domain) > ADDRESS_LENGTH:
        raise Invalid(
            "email_malformed",
            f"{text.strip()[:ADDRESS_LENGTH]!r} is not an e-mail address.",
            advice=f"Give one address like name@example.org, at most {ADDRESS_LENGTH} characters.",
            field=field,
        )
    return f"{local}@{domain}"


def _in_ascii(domain: str) -> str:
    try:
        return domain.encode("idna").decode("ascii")
    except UnicodeError:
        return ""
