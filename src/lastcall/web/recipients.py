"""Reading what a person pasted: one VRChat user a line, with whatever else stood on the line."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST = 100
"""People in one request (ENQ-02)."""
TEXT_MOST = 40_000
"""Characters of pasted text that are looked at: a hundred lines of four hundred."""
LABEL_MOST = 80

_HEX = "[0-9a-fA-F]"
_USER = re.compile(rf"usr_{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}(?![0-9a-fA-F-])")
_TURNING = dict.fromkeys([0, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])
_AROUND = " \t,;:|<>()[]\"'-\u2013\u2014·#/"


@dataclass(frozen=True)
class Recipient:
    """One person: where they stood, the id, and the rest of the line (a name, usually), shown at review
    only.
    """

    line: int
    user_id: str
    label: str


@dataclass(frozen=True)
class LineProblem:
    line: int
    text: str
    sentence: str


@dataclass(frozen=True)
class Recipients:
    """``repeated`` are lines that name somebody again: they are left out and said at review."""

    people: tuple[Recipient, ...]
    problems: tuple[LineProblem, ...]
    repeated: tuple[LineProblem, ...] = ()


def read_recipients(text: str, most: int = MOST) -> Recipients:
    """The people in ``text`` and what is wrong with it, line by line. Profile addresses work as well as
    bare ids.
    """
    if len(text) > TEXT_MOST:
        return Recipients(
            (), (LineProblem(1, "", f"This text is too long: at most {TEXT_MOST:,} characters."),)
        )
    people: list[Recipient] = []
    problems: list[LineProblem] = []
    repeated: list[LineProblem] = []
    first_seen: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line:
            continue
        found = _USER.findall(line)
        sentence = ""
        if not found:
            sentence = "There is no VRChat user id here: usr_ and 32 hexadecimal digits with hyphens."
        elif len(found) > 1:
            sentence = "There is more than one user id here: put each on its own line."
        if sentence:
            problems.append(LineProblem(number, line[:LABEL_MOST], sentence))
            continue
        user_id = found[0].lower()
        if user_id in first_seen:
            repeated.append(
                LineProblem(number, line[:LABEL_MOST], f"This repeats line {first_seen[user_id]}.")
            )
            continue
        first_seen[user_id] = number
        people.append(Recipient(number, user_id, _label(line, found[0])))
    if len(people) > most:
        rest = people[most].line
        problems.append(LineProblem(rest, "", _too_many(len(people), most)))
    return Recipients(tuple(people), tuple(problems), tuple(repeated))


def _label(line: str, user_id: str) -> str:
    if "://" in line:
        return ""
    # Without signs that turn the direction of what follows them: at review a name must not rewrite the id.
    shown = line.translate(_TURNING)
    return shown.replace(user_id, " ").strip(_AROUND)[:LABEL_MOST]


def _too_many(count: int, most: int) -> str:
    if most == 1:
        return f"This action is for one person, and here are {count}: leave one."
    return f"Here are {count} people, and one request takes at most {most}: make several."
