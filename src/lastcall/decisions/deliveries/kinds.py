"""The kinds of message, what each says, and who may know it. A kind is declared once, by the part that sends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lastcall.clubs.policy import Standing
from lastcall.people.preferences import Topic


@dataclass(frozen=True)
class Words:
    """What a message says to a person. ``sentence`` has the club's name in it; ``place`` is the page to go to, behind
    ``/c/<slug>/``, and ``action`` the words of the link. Neither says anything of what the source is about: mail is
    read on many screens.
    """

    subject: str
    sentence: str
    action: str
    place: str


@dataclass(frozen=True)
class Told:
    """A message as its words are made: in which club, about what, and the ids and counts it was sent with."""

    club: str
    source_id: UUID | None
    data: Mapping[str, Any]


Say = Callable[[Told, Standing], Words | None]


@dataclass(frozen=True)
class Kind:
    """A kind of message. ``say`` answers nothing for a reader who may not know of it: it is asked each time the message
    is shown and again before it is sent, with what they are in the club by then. ``topic`` is what people choose mails
    by.
    """

    name: str
    topic: Topic
    say: Say


_kinds: dict[str, Kind] = {}


def declare_kind(*kinds: Kind) -> None:
    """Let messages of these kinds be sent to people. Declaring one twice is once."""
    _kinds.update({kind.name: kind for kind in kinds})


def kind_of(name: str) -> Kind | None:
    """The declared kind; none for one that only agents are told, or that this version does not know."""
    return _kinds.get(name)
