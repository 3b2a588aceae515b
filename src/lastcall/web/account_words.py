"""An account's states in words for operators: how each looks, what it means, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from lastcall.connections.overview import AccountLine
from lastcall.connections.states import AccountState

_A = AccountState


@dataclass(frozen=True)
class StateWords:
    """``word`` stands in lists, ``means`` and ``to_do`` on the account's page; ``asked`` and ``follows`` in the
    question before an operator sets it, ``button`` on what sets it: where there is none, nobody sets it."""

    tone: str
    icon: str
    word: str
    means: str
    to_do: str
    button: str = ""
    asked: str = ""
    follows: str = ""


STATES: dict[AccountState, StateWords] = {
    _A.PROVISIONING: StateWords(
        "wait",
        "clock",
        "Provisioning",
        "It was added and does nothing yet: its collector waits.",
        "Look at its profile in VRChat, start its collector, then set it to ready.",
    ),
    _A.READY: StateWords(
        "ok",
        "check",
        "Ready",
        "It works.",
        "",
        "Set to ready",
        "Let {alias} work?",
        "Its collector is let in. Groups of clubs that waited for its sign-in are looked at first, and what was missed"
        " stays missed.",
    ),
    _A.DEGRADED: StateWords(
        "wait",
        "warning",
        "Degraded",
        "An operator took it out of work for a while. It does nothing; its clubs stay with it.",
        "Set it to ready once it is well again.",
        "Set to degraded",
        "Take {alias} out of work for a while?",
        "Nothing further is sent through it, its clubs stay with it, and no new club gets it. Queued work that comes"
        " due is missed after 15 minutes.",
    ),
    _A.COOLDOWN: StateWords(
        "wait",
        "pause",
        "Cooling down",
        "VRChat asked it to slow down. It works again by itself once the time is over.",
        "Nothing. Setting it to ready ends the wait early, which VRChat may answer with a longer one.",
    ),
    _A.AUTH_REQUIRED: StateWords(
        "bad",
        "key",
        "Must sign in again",
        "VRChat no longer takes its session. It does nothing until a person has signed it in.",
        "Start its collector with --sign-in-anew, then set it to ready.",
    ),
    _A.QUARANTINED: StateWords(
        "bad",
        "warning",
        "Quarantined",
        "An operator took it out of work because something is wrong with it. It does nothing.",
        "Give its clubs to another account, or set it to ready once you know that all is well.",
        "Quarantine",
        "Quarantine {alias}?",
        "Nothing further is sent through it, and its clubs can be given to other accounts. Queued work that comes due"
        " before another one has taken over is missed after 15 minutes.",
    ),
    _A.RETIRING: StateWords(
        "wait",
        "leave",
        "Retiring",
        "It is on its way out: it does nothing and gets no club.",
        "Give its clubs to another account; then retire it.",
        "Begin to retire",
        "Begin to retire {alias}?",
        "Nothing further is sent through it, and its clubs can be given to other accounts. Once it has none it can be"
        " retired for good.",
    ),
    _A.RETIRED: StateWords(
        "",
        "slash",
        "Retired",
        "It is out of work for good. What it did stays in the history.",
        "Nothing. Its collector can be ended and its key revoked.",
        "Retire",
        "Retire {alias} for good?",
        "It serves no club any more, and it gets none. Results of what it sent are still taken.",
    ),
}


def obstacle_of(account: AccountLine) -> str | None:
    """Why it does not work now although its state would let it."""
    if account.kill_switch:
        return "It is stopped by its switch."
    if account.obstacle == "fleet_switch":
        return "All accounts are stopped."
    if not account.has_key:
        return "It has no worker key: no collector is let in."
    return None
