"""Addresses and names as people write them: cut to shape or refused with the field."""

from __future__ import annotations

from lastcall.errors import Invalid

EMAIL_LENGTH = 254  # characters, RFC 5321's limit for a forward path
NAME_LENGTH = 80  # characters


def valid_email(email: str) -> str:
    """The address without spaces around it. Raises ``Invalid`` for what is none."""
    email = email.strip()
    local, at, domain = email.rpartition("@")
    if not (local and at and domain) or len(email) > EMAIL_LENGTH or any(_is_odd(c) for c in email):
        raise Invalid(
            "email_malformed",
            f"{email[:EMAIL_LENGTH]!r} is not an e-mail address.",
            advice=f"Give one address like name@example.org, at most {EMAIL_LENGTH} characters.",
            field="email",
        )
    return email


def _is_odd(character: str) -> bool:
    """Spaces, control characters and what else could end a mail's header or hide in an address."""
    return character.isspace() or not character.isprintable() or character in '<>,;:"()[]\\'


def valid_name(name: str, field: str = "display_name") -> str:
    """The name without spaces around it. Raises ``Invalid`` for an empty one, a long one, and one with
    characters that no eye sees or that turn the direction of what follows."""
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        raise Invalid(
            "name_malformed",
            "The name is empty, too long or holds control characters.",
            advice=f"Give a name of 1 to {NAME_LENGTH} printable characters.",
            field=field,
        )
    return name
