"""What can be done with a connection: when it is offered, the question before it, and the one command behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from lastcall.connections.connect import disconnect_club, finish_disconnect
from lastcall.connections.looks import check_now, rejoin
from lastcall.connections.states import PASSABLE, ConnectionState
from lastcall.connections.switches import set_connection_switch, thaw_connection
from lastcall.connections.transitions import DISCONNECT, REJOIN
from lastcall.db.database import Database
from lastcall.people.actor import Actor
from lastcall.web.connection import Sight

Command = Callable[[Database, Actor, UUID, UUID], Awaitable[None]]


@dataclass(frozen=True)
class Act:
    """``title`` may name the group. ``says_unsent``: what the question says of queued actions, with ``{unsent}``; none
    for an act that leaves them alone.
    """

    button: str
    icon: str
    title: str
    sentences: tuple[str, ...]
    do: Command
    is_offered: Callable[[Sight], bool]
    says_unsent: str = ""
    is_asked: bool = True
    is_danger: bool = False
    needs_confirming: bool = False


async def _stop(db: Database, actor: Actor, club_id: UUID, connection_id: UUID) -> None:
    await set_connection_switch(db, actor, club_id, connection_id, is_on=True)


async def _go(db: Database, actor: Actor, club_id: UUID, connection_id: UUID) -> None:
    await set_connection_switch(db, actor, club_id, connection_id, is_on=False)


def _lives(sight: Sight) -> bool:
    return sight.health.state in DISCONNECT.leaves


ACTS: dict[str, Act] = {
    "check": Act(
        "Look now",
        "turn",
        "Look at {group} now?",
        ("The collector reads the group, and what it lets the account do, as soon as it may.",),
        check_now,
        lambda sight: sight.health.state in PASSABLE,
        is_asked=False,
    ),
    "rejoin": Act(
        "Join again",
        "plus",
        "Let the account join {group} again?",
        (
            "It joins where the group lets it, or asks to be let in.",
            "Whoever removed it in VRChat may have meant it: ask them first.",
        ),
        rejoin,
        lambda sight: sight.health.state in REJOIN.leaves,
    ),
    "go": Act(
        "Let it go on",
        "check",
        "Let {group} go on?",
        ("What you queue is sent again from now on. What was missed meanwhile stays missed.",),
        _go,
        lambda sight: sight.card.kill_switch,
        says_unsent="Waiting now: {unsent}.",
        needs_confirming=True,
    ),
    "thaw": Act(
        "Unfreeze",
        "check",
        "Unfreeze {group}?",
        (
            "Its collector reported something this server does not know; it happens when the database went back.",
            "Look in VRChat at what was done before you go on.",
        ),
        thaw_connection,
        lambda sight: sight.card.frozen_at is not None,
        says_unsent="Waiting to be sent after this: {unsent}.",
    ),
    "stop": Act(
        "Stop",
        "pause",
        "Stop {group}?",
        (
            "Nothing further is sent from the moment this is done. What was already sent is still settled.",
            "What comes due meanwhile is missed after 15 minutes.",
        ),
        _stop,
        lambda sight: not sight.card.kill_switch and _lives(sight),
        says_unsent="Waiting now: {unsent}.",
        is_danger=True,
    ),
    "disconnect": Act(
        "Disconnect",
        "leave",
        "Disconnect {group}?",
        (
            "The account leaves the group. What was already sent is still settled, and what was counted stays.",
            "Connecting the group again begins anew: what was queued before does not come back.",
        ),
        disconnect_club,
        _lives,
        says_unsent="Not sent yet, and never will be: {unsent}.",
        is_danger=True,
    ),
    "finish": Act(
        "End without leaving",
        "slash",
        "End the connection to {group} without leaving?",
        (
            "For when the account cannot leave by itself.",
            "It stays a member of the group until somebody removes it in VRChat.",
        ),
        finish_disconnect,
        lambda sight: sight.health.state is ConnectionState.DISCONNECTING,
        is_danger=True,
    ),
}
