"""Functions on what a club's agents cost."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from tests.matrix.cases import Row, Who, row

from lastcall.clubs.permissions import Permission
from lastcall.db.ids import new_id
from lastcall.people.scopes import Scope
from lastcall.spending import budgets, queries
from lastcall.spending.budgets import BudgetFields, Period

NEEDS = Permission.MANAGE_BUDGETS
SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)

SPENDING: list[Row] = [
    row(
        budgets.set_budget,
        Who.STAFF,
        Scope.CLUBS,
        lambda w, _, a: budgets.set_budget(
            w.db, a, w.club_id, None, Period.MONTH, BudgetFields(Decimal(100)), None
        ),
        NEEDS,
    ),
    # There is none yet, which only those are told who may manage them.
    row(
        budgets.end_budget,
        Who.STAFF,
        Scope.CLUBS,
        lambda w, _, a: budgets.end_budget(w.db, a, w.club_id, new_id(), SOME_TIME),
        NEEDS,
        answer="budget_unknown",
    ),
    row(
        budgets.leave_incident,
        Who.STAFF,
        Scope.CLUBS,
        lambda w, _, a: budgets.leave_incident(w.db, a, w.club_id, new_id()),
        NEEDS,
        answer="incident_unknown",
    ),
    row(
        queries.spending_of,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: queries.spending_of(tx, a, w.club_id),
        NEEDS,
    ),
    row(queries.costs_of, Who.STAFF, Scope.READ, lambda w, tx, a: queries.costs_of(tx, a, w.club_id), NEEDS),
]
