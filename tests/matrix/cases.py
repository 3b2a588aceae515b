"""What a row says of a function, who calls it, and the answer that follows from the two."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tests.matrix.functions import Function, name_of

from lastcall.clubs.permissions import Permission
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

ALLOWED = "allowed"
STEP_UP, BROWSER, SCOPE = "step_up_needed", "browser_needed", "scope_missing"


class Who(Enum):
    """Whom a function is for."""

    ANYBODY = auto()
    SELF = auto()
    """Whoever is signed in, about what is theirs."""
    STAFF = auto()
    """Staff with the permissions that are needed."""
    OWNER = auto()
    OPERATOR = auto()
    OWNER_OR_OPERATOR = auto()
    STAFF_OR_OPERATOR = auto()


_ALSO_OPERATORS = {Who.OPERATOR, Who.OWNER_OR_OPERATOR, Who.STAFF_OR_OPERATOR}


@dataclass(frozen=True)
class Case:
    """Somebody who calls. ``permissions`` are theirs in the club; ``actor`` None is the host's command line."""

    name: str
    actor: Actor | None
    is_owner: bool = False
    is_staff: bool = False
    permissions: frozenset[Permission] = frozenset()
    is_blocked: bool = False
    is_operator: bool = False
    only: Permission | None = None
    all_but: Permission | None = None
    exactly: frozenset[Permission] | None = None
    """Those three are there for the rows that ``is_for`` says."""

    def is_for(self, row: Row) -> bool:
        """Each permission alone is tried on every function that is called with a club; one that is missing on every
        function that needs it. That nothing else is needed is tried by who holds exactly what is."""
        if self.only is not None:
            return bool(inspect.signature(row.function).parameters.keys() & {"club_id", "slug"})
        if self.all_but is not None:
            return self.all_but in row.needs
        return self.exactly is None or self.exactly == row.needs

    @property
    def is_token(self) -> bool:
        return self.actor is not None and self.actor.scopes is not None

    def has(self, scope: Scope | None) -> bool:
        return self.actor is None or scope is None or self.actor.has_scope(scope)


Call = Callable[[Any, Any, Any], Any]
"""``(world, tx, actor)``: with valid arguments, so that nothing but authority can refuse."""


@dataclass(frozen=True)
class Row:
    """One use of one function.

    ``hides``: those of the needed permissions without which the thing is not there at all, with the code ``hidden``.
    ``unknown`` is the code off the staff, ``refusal`` the one for whoever is no operator; ``answer`` what somebody
    who may gets at the end of a call that cannot be right here. ``is_judged_again``: a block stops it even when it was
    on its way; else what a person is doing to their own account just then goes through.
    """

    function: Function
    who: Who
    scope: Scope | None
    call: Call
    needs: frozenset[Permission] = frozenset()
    hides: frozenset[Permission] = frozenset()
    is_recent: bool = False
    unknown: str = "club_unknown"
    hidden: str = "join_request_unknown"
    refusal: str = "operators_only"
    answer: str = ALLOWED
    is_judged_again: bool = False
    no_actor: str | None = None
    """What a call without an actor gets, where that is allowed by the function."""
    special: Callable[[Case], str | None] = field(default=lambda _: None)
    variant: str = ""

    @property
    def name(self) -> str:
        return name_of(self.function) + (f" ({self.variant})" if self.variant else "")


def row(
    function: Function,
    who: Who,
    scope: Scope | None,
    call: Call,
    *needs: Permission,
    hides: tuple[Permission, ...] = (),
    **other: Any,
) -> Row:
    return Row(function, who, scope, call, frozenset(needs) | frozenset(hides), frozenset(hides), **other)


def expected(row: Row, case: Case) -> set[str]:
    """The answers that are right; more than one only where the order of two refusals does not matter."""
    if case.actor is None:
        return {row.no_actor or row.answer}
    special = row.special(case)
    if special is not None:
        return {special}
    found = _expected(row, case)
    # Somebody who may not either way may be told of either first.
    return found if row.answer in found or not row.is_recent else found | _unconfirmed(case)


def _expected(row: Row, case: Case) -> set[str]:
    assert case.actor is not None
    refused = {SCOPE}
    is_operator = case.is_operator and not case.is_blocked and row.who in _ALSO_OPERATORS
    if is_operator and case.has(Scope.OPERATOR):
        return _recent(row, case)
    if row.who is Who.OPERATOR:
        if is_operator:
            return refused
        # Somebody who was one when the call began is told what everybody else is.
        return {row.refusal, "operators_only"} if case.actor.is_operator else {row.refusal}
    if not case.has(row.scope):
        return refused
    if row.who in (Who.SELF, Who.ANYBODY):
        return {"not_signed_in"} if case.is_blocked and row.is_judged_again else _recent(row, case)
    if not case.is_staff:
        was_operator = case.actor.is_operator and not case.is_operator and row.who in _ALSO_OPERATORS
        return {row.unknown, "operators_only"} if was_operator else {row.unknown}
    if row.who in (Who.OWNER, Who.OWNER_OR_OPERATOR):
        return _recent(row, case) if case.is_owner else {"owner_only"}
    missing = row.needs - case.permissions
    if missing & row.hides:
        return {row.hidden}
    return {"permission_missing"} if missing else _recent(row, case)


def _recent(row: Row, case: Case) -> set[str]:
    return (_unconfirmed(case) if row.is_recent else set()) or {row.answer}


def _unconfirmed(case: Case) -> set[str]:
    assert case.actor is not None
    if case.is_token:
        return {BROWSER}
    return set() if case.actor.is_recent else {STEP_UP}
