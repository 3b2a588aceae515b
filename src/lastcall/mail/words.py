"""Texts of mails go through one function, so that a catalogue of translations can be put behind it."""

from __future__ import annotations

import gettext
import re
import unicodedata

_CATALOGUE = gettext.NullTranslations()

_DIRECTIONS = re.compile("[\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2061-\u2069\ufeff]")
"""Invisible characters that turn the direction of what follows or hide in a name; not the joiner inside emoji."""
_AUTOLINK = re.compile(r"(?<=\w)([.@]|:(?=//))(?=\S)")
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_ISOLATED = "\u2068{}\u2069"
_JOINER = "\u2060"
VALUE_LENGTH = 200  # characters of one value; a name has 80


def say(msgid: str, **values: str) -> str:
    """The sentence ``msgid`` in the reader's language, with ``values`` put in where it says ``{name}``.

    Values are what people typed: control and direction characters are taken out, a name written from right to
    left cannot rearrange the sentence, and mail programs do not make a link of one that looks like an address.
    """
    return _CATALOGUE.gettext(msgid).format_map({name: harmless(value) for name, value in values.items()})


def harmless(value: str) -> str:
    """``value`` as it may stand in a sentence of ours."""
    plain = " ".join(one_line(value).split())[:VALUE_LENGTH]
    defused = _AUTOLINK.sub(lambda found: found[0] + _JOINER, plain)
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in defused):
        return _ISOLATED.format(defused)
    return defused


def one_line(text: str) -> str:
    """``text`` without line breaks, control characters and characters that turn the direction."""
    visible = _DIRECTIONS.sub("", text)
    return "".join(" " if unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"} else one for one in visible)
