"""What people are told, kind by kind. Nothing of what an item says is in it: mail is read on many screens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.db.ids import encode_id
from lastcall.decisions.deliveries.kinds import Kind, Told, Words
from lastcall.decisions.retention.explain import AGEING
from lastcall.mail.words import say
from lastcall.people.preferences import Topic

ASKED = Topic("asked", "something I asked for is decided or answered")
WAITING = Topic("retention", "something I may decide is about to be archived, or was")


@dataclass(frozen=True)
class Counted:
    """How a reminder and a digest count a kind of item: who may know of it, and its words for one and for more."""

    permission: Permission
    one: str
    more: str


COUNTED = {
    "join_request": Counted(Permission.DECIDE_ACCESS, "a join request", "{count} join requests"),
    "approval": Counted(Permission.DECIDE_APPROVALS, "an approval", "{count} approvals"),
}
"""By the name of the kind, which is the name of the count in ``data``."""


def _approval(subject: str, sentence: str) -> Callable[[Told, Standing], Words | None]:
    return _about("approvals", subject, sentence, "See the approval")


def _decision(subject: str, sentence: str) -> Callable[[Told, Standing], Words | None]:
    return _about("decisions", subject, sentence, "See the decision")


def _about(folder: str, subject: str, sentence: str, action: str) -> Callable[[Told, Standing], Words | None]:
    def words(told: Told, _: Standing) -> Words | None:
        if told.source_id is None:
            return None
        place = f"{folder}/{encode_id(told.source_id)}"
        return Words(say(subject), say(sentence, club=told.club), say(action), place)

    return words


def _reminder(told: Told, standing: Standing) -> Words | None:
    counted = _counted(told, standing)
    if counted is None:
        return None
    sentence = say(
        "On {day} Lastcall archives {items} of {club} that nobody has decided. Decide or keep what you want to see.",
        day=_day(told),
        items=counted,
        club=told.club,
    )
    # A week before its time, what a club archives early is not on the shelf of the ageing yet.
    is_ageing = timedelta(days=(told.data.get("days") or 0) - 7) >= AGEING
    place = "inbox?shelf=ageing" if is_ageing else "inbox"
    return Words(say("Something is about to be archived"), sentence, say("See what waits"), place)


def _digest(told: Told, standing: Standing) -> Words | None:
    counted = _counted(told, standing)
    if counted is None:
        return None
    sentence = say(
        "On {day} Lastcall archived {items} of {club} that nobody had decided. Each can be brought back.",
        day=_day(told),
        items=counted,
        club=told.club,
    )
    return Words(
        say("Something was archived"), sentence, say("See what was archived"), "inbox?shelf=archived"
    )


def _counted(told: Told, standing: Standing) -> str | None:
    """What the reader may know of, in words: ``2 join requests and an approval``."""
    parts = []
    for name, kind in COUNTED.items():
        count = told.data.get(name, 0)
        if count and standing.holds(kind.permission):
            parts.append(say(kind.one) if count == 1 else say(kind.more, count=str(count)))
    return say(" and ").join(parts) or None


def _day(told: Told) -> str:
    return say("{day} (UTC)", day=f"{date.fromisoformat(told.data['day']):%-d %B %Y}")


KINDS = (
    Kind(
        "approval.approved",
        ASKED,
        _approval("What you asked for was approved", "An approval of yours in {club} was granted."),
    ),
    Kind(
        "approval.rejected",
        ASKED,
        _approval("What you asked for was turned down", "An approval of yours in {club} was turned down."),
    ),
    Kind(
        "approval.revision_requested",
        ASKED,
        _approval(
            "What you asked for needs a change", "Somebody asks you to change an approval of yours in {club}."
        ),
    ),
    Kind(
        "approval.commented",
        ASKED,
        _approval("Somebody answered you", "There is a new comment on an approval in {club}."),
    ),
    Kind(
        "decision.decided",
        ASKED,
        _decision("Your question was decided", "A decision that you asked for in {club} was made."),
    ),
    Kind(
        "decision.expired",
        ASKED,
        _decision(
            "Your question was not decided in time",
            "A decision that you asked for in {club} ended undecided.",
        ),
    ),
    Kind(
        "decision.cancelled",
        ASKED,
        _decision("Your question was withdrawn", "A decision that you asked for in {club} was withdrawn."),
    ),
    Kind("retention.reminder", WAITING, _reminder),
    Kind("retention.digest", WAITING, _digest),
)
