"""How an account's state may change, as data: from which state to which, and who may move it.

``provisioning``, ``ready``, ``degraded``, ``cooldown``, ``auth_required``, ``quarantined``, ``retiring``,
``retired``. Only a ready account works, and one whose cooldown is over; all others are disabled (WRK-07), the
degraded one too. A move to the state that an account has already is no move and always allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from lastcall.connections.states import AccountState

_A = AccountState


class Mover(StrEnum):
    """``COLLECTOR``: what the account's worker reports of VRChat."""

    OPERATOR = "operator"
    COLLECTOR = "collector"


_TAKEN_OUT = {_A.DEGRADED: Mover.OPERATOR, _A.QUARANTINED: Mover.OPERATOR, _A.RETIRING: Mover.OPERATOR}
_PUT_BACK = {_A.READY: Mover.OPERATOR}
_ENDED = {_A.RETIRED: Mover.OPERATOR}
_REPORTED = {_A.COOLDOWN: Mover.COLLECTOR, _A.AUTH_REQUIRED: Mover.COLLECTOR}

MOVES: Mapping[AccountState, Mapping[AccountState, Mover]] = {
    _A.PROVISIONING: _PUT_BACK | _TAKEN_OUT | _ENDED,
    _A.READY: _TAKEN_OUT | _ENDED | _REPORTED,
    _A.DEGRADED: _PUT_BACK | _TAKEN_OUT | _ENDED,
    # Once its time is over it works again; that is judged when it is asked, and nobody writes it.
    _A.COOLDOWN: _PUT_BACK | _TAKEN_OUT | _ENDED | _REPORTED,
    _A.AUTH_REQUIRED: _PUT_BACK | _TAKEN_OUT | _ENDED,
    _A.QUARANTINED: _PUT_BACK | {_A.RETIRING: Mover.OPERATOR} | _ENDED,
    _A.RETIRING: _PUT_BACK | {_A.QUARANTINED: Mover.OPERATOR} | _ENDED,
    _A.RETIRED: _PUT_BACK,
}
"""``retired`` besides asks that no connection of the account is left."""

SETTABLE = frozenset(
    state for moves in MOVES.values() for state, mover in moves.items() if mover is Mover.OPERATOR
)
"""What an operator may say of an account; the other states follow from what happens to it."""

LEAVING = frozenset({_A.QUARANTINED, _A.RETIRING, _A.RETIRED})
"""Connections may be given to another account only when theirs is in one of these."""


def may_move(mover: Mover, state: AccountState, to: AccountState) -> bool:
    """Whether ``mover`` may bring an account from one state to the other."""
    return state is to or MOVES[state].get(to) is mover


def moves_of_operator(state: AccountState) -> tuple[AccountState, ...]:
    """Where an operator may bring an account from here, in the order of the enum."""
    return tuple(to for to in AccountState if to is not state and MOVES[state].get(to) is Mover.OPERATOR)
