"""What people write about an event, over as many lines as they like."""

from __future__ import annotations

import unicodedata

from lastcall.errors import Invalid

TITLE_LENGTH = 120  # characters
DESCRIPTION_LENGTH = 5000  # characters


def valid_description(text: str) -> str:
    """The text in the form in which it is stored: NFC, lines ended by LF, no space around it.

    Raises ``Invalid`` naming ``description`` for one that is too long or holds control characters.
    """
    plain = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if len(plain) > DESCRIPTION_LENGTH or any(is_control(character) for character in plain):
        raise Invalid(
            "description_malformed",
            "The description is too long or holds control characters.",
            advice=f"Write at most {DESCRIPTION_LENGTH} characters.",
            field="description",
        )
    return plain


def is_control(character: str) -> bool:
    """Whether a text of several lines may not hold this: controls but tab and line end, and halves of characters."""
    return unicodedata.category(character) in {"Cc", "Cs"} and character not in "\t\n"
