"""Texts of others in the form in which an event may hold them: what does not fit is left out, not refused."""

from __future__ import annotations

import unicodedata

from lastcall.errors import Invalid
from lastcall.events.texts import DESCRIPTION_LENGTH, TITLE_LENGTH, is_control
from lastcall.names import valid_name

UNTITLED = "Untitled"


def one_line(text: str, most: int = TITLE_LENGTH) -> str:
    """The text as a name, on one line; empty where nothing of it can be seen."""
    shown = "".join(
        " " if unicodedata.category(c) in {"Zs", "Zl", "Zp", "Cc"} else c
        for c in unicodedata.normalize("NFC", text[: 4 * most])
        if unicodedata.category(c) not in {"Cf", "Cs", "Co", "Cn"} or c == "\u200d"
    )
    words = " ".join(shown.split())[:most].strip()
    for tried in (words, "".join(c for c in words if unicodedata.category(c)[0] in "LNPS" or c == " ")):
        try:
            return valid_name(tried, most=most, least=0)
        except Invalid:
            continue
    return ""


def many_lines(text: str) -> str:
    """The text as a description, cut to what one holds."""
    plain = unicodedata.normalize(
        "NFC", text[: 4 * DESCRIPTION_LENGTH].replace("\r\n", "\n").replace("\r", "\n")
    )
    return "".join(c for c in plain if not is_control(c)).strip()[:DESCRIPTION_LENGTH].strip()
