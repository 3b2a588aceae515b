"""Names that people give: in the letters of any script, and nothing that a reader cannot see.

A name stands in sentences, lists, mails and logs beside what others wrote. So it may hold no control, no
override of the writing direction and no invisible character: those make one name look like another, or turn
the words around it. Markup needs no rule here; where a name is shown it is escaped.
"""

from __future__ import annotations

import unicodedata

from lastcall.errors import Invalid

NAME_LENGTH = 80
"""Characters of a name at most, unless its field says otherwise."""

MARKS_IN_A_ROW = 4
"""Combining marks on one letter at most: what living scripts need, and no tower that covers other lines."""

_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_KEYCAP = "\u20e3"
_ARROWS = "↔↕"  # emoji, though mathematical signs by category
_INVISIBLE = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0x180B, 0x1810)}
    | {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
)
"""What shows nothing though its category says letter, mark or symbol (Unicode's default ignorables, and the empty
Braille cell)."""


def valid_name(
    text: str, field: str = "name", *, most: int = NAME_LENGTH, least: int = 1, what: str = "The name"
) -> str:
    """The name in the form in which it is stored: NFC, single spaces, none at the ends.

    Raises ``Invalid`` naming ``field`` for an empty or too long one (``least`` 0 allows empty), and for one with a
    character that shows nothing or changes how others show: controls, overrides of the writing direction,
    zero-width characters (but the joiner inside an emoji), private and unassigned ones, towers of marks.
    """
    spaced = "".join(
        " " if unicodedata.category(c) == "Zs" else c for c in unicodedata.normalize("NFC", text)
    )
    name = " ".join(part for part in spaced.split(" ") if part)
    if not least <= len(name) <= most:
        raise Invalid(
            "name_malformed",
            f"{what} is empty." if not name else f"{what} is longer than {most} characters.",
            advice=f"Use {least} to {most} characters.",
            field=field,
        )
    found = _unfit(name)
    if found is not None:
        raise Invalid(
            "name_malformed",
            f"{what} holds a character that cannot be seen or that changes how the text around it is shown"
            f" (U+{ord(found):04X}).",
            advice="Type it anew, with visible characters only.",
            field=field,
        )
    return name


def valid_note(text: str | None, *, most: int) -> str | None:
    """What somebody wrote to somebody else, over several lines if they like; None for nothing.

    Raises ``Invalid`` naming ``note`` for one longer than ``most`` characters and for one with controls.
    """
    note = (text or "").strip()
    if len(note) > most or not note.replace("\n", " ").replace("\r", " ").isprintable():
        raise Invalid(
            "note_malformed",
            "The note is too long or holds control characters.",
            advice=f"Write at most {most} characters.",
            field="note",
        )
    return note or None


def _unfit(name: str) -> str | None:
    """The first character that a name may not hold."""
    marks = 0
    for place, character in enumerate(name):
        category = unicodedata.category(character)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if marks > MARKS_IN_A_ROW or (marks and place == marks - 1):
            return character
        if character in {_JOINER, _EMOJI_STYLE}:
            if not _is_inside_emoji(name, place):
                return character
        elif category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or ord(character) in _INVISIBLE:
            return character
    return None


def _is_inside_emoji(name: str, place: int) -> bool:
    before, after = name[:place], name[place + 1 :]
    if name[place] == _JOINER:
        return _is_emoji(before.removesuffix(_EMOJI_STYLE)[-1:]) and _is_emoji(after[:1])
    return _is_emoji(before[-1:]) or (before[-1:] in set("0123456789#*") and after[:1] == _KEYCAP)


def _is_emoji(character: str) -> bool:
    return character != "" and (
        unicodedata.category(character) == "So"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or character in _ARROWS
    )
