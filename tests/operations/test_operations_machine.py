"""The machine's table, the database's CHECKs, the routines and the page agree."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from lastcall.db.database import Database
from lastcall.operations import diagram
from lastcall.operations.codes import REASONS, UNRECOGNIZED
from lastcall.operations.machine import LABELS, REFUSALS, TERMINAL, TRANSITIONS, UNSENT, Event, State, moves
from lastcall.operations.schedules import late_at
from lastcall.operations.tables import SHAPES
from lastcall.protocol import constants
from lastcall.protocol.outcomes import TRANSIENT_CODES
from lastcall.protocol.outcomes import Code as CollectorCode
from lastcall.vrchat.writes.judging import AnswerCode

ROOM = Path(diagram.__file__).parent
SQL = {path.name: path.read_text() for path in sorted((ROOM / "sql").glob("*.sql"))}
ROOT = ROOM.parents[2]


def test_page_of_states_is_what_the_table_makes() -> None:
    assert (ROOT / "docs/explanation/operation-states.md").read_text() == diagram.page()


def test_terminal_states_have_no_way_out_and_all_others_have_one() -> None:
    leaving = {move.source for move in TRANSITIONS}
    assert not leaving & TERMINAL
    assert leaving == {None, *State} - TERMINAL
    assert {target for move in TRANSITIONS for target in move.targets} == set(State)
    assert set(LABELS) == set(State)
    assert {move.event for move in TRANSITIONS} == set(Event)


def test_nothing_that_was_submitted_is_ever_sent_again() -> None:
    """No path leads from submitted back to a state from which a write could leave."""
    assert {target for source, target in moves() if source is State.SUBMITTED} <= TERMINAL


def test_every_refusal_leads_where_the_machine_allows() -> None:
    refused = next(move for move in TRANSITIONS if move.event is Event.AUTHORIZE_REFUSED)
    assert {state for state in REFUSALS.values() if state is not None} <= refused.targets


def test_the_routine_gives_exactly_the_refusals_of_the_table() -> None:
    judged = (
        SQL["authorize.sql"]
        + _function("rows.sql", "claim_refusal")
        + _function("verdict.sql", "event_verdict")
        + _function("standing.sql", "authority")
    )
    returned = set(
        re.findall(r"return '([a-z_]+)'|then '([a-z_]+)'$|else '([a-z_]+)'$", judged, re.MULTILINE)
    )
    assert {code for found in returned for code in found if code} == set(REFUSALS)


async def test_a_refusal_leaves_the_row_in_the_state_of_the_table(database: Database) -> None:
    for code, state in REFUSALS.items():
        if state is not None:
            assert await database.pool.fetchval("select refused_state($1)", code) == state


def test_shapes_in_the_table_cover_each_state_as_the_machine_means_it() -> None:
    shapes: dict[str, set[str]] = {}
    for shape in SHAPES:
        shapes.setdefault(shape.rstrip("0123456789"), set()).add(shape.lstrip("abcdefghijklmnopqrstuvwxyz"))
    assert set(shapes) == {state.value for state in State}
    for name, found in shapes.items():
        state = State(name)
        for claim, submission, end, code in found:
            assert (end == "1") == state.is_terminal
            assert claim in "07"
            if state in UNSENT or state in {State.CANCELLED, State.MISSED}:
                assert submission == "0"
            if state.is_terminal:
                assert (claim == "7") == (submission == "1")
            if state in {State.REJECTED, State.INDETERMINATE, State.CANCELLED, State.MISSED}:
                assert code == "1"


def test_every_update_of_a_row_names_the_states_it_may_leave() -> None:
    """A guarded update is the only kind there is, and its states are literals."""
    updates = [
        (name, statement)
        for name, text in _texts().items()
        for statement in re.findall(r"update operations\b.*?(?:;|\"\"\")", text, re.DOTALL)
    ]
    assert len(updates) >= 6
    for name, statement in updates:
        assert re.search(
            r"state (?:(?:=|is not distinct from) '[a-z]+'|in \('pending', 'claimed'\))",
            statement.partition("where")[2],
        ), name


def test_sql_never_binds_a_state_that_it_looks_for() -> None:
    """But for the lists, where the state is in the index's key and not in its predicate."""
    for name, text in _texts().items():
        for bound in re.findall(r"\.state = (\S+)", text):
            assert bound.startswith(("'", "any", "t.state")), (name, bound)


async def test_constants_of_the_database_are_those_of_the_protocol(database: Database) -> None:
    row = await database.pool.fetchrow(
        """
        select operation_grace() as grace, claim_life() as claim, submission_life() as submission,
               evidence_life() as evidence, transient_retries() as retries,
               late_at('2026-03-01 12:00:00.123456Z') as late_at,
               is_late('2026-03-01 12:00Z', '2026-03-01 12:15Z') as at_boundary,
               is_late('2026-03-01 12:00Z', late_at('2026-03-01 12:00Z')) as after_boundary,
               '2026-03-01 12:00:00.123456Z'::timestamptz as due_at
        """
    )
    assert row is not None
    assert row["grace"] == constants.GRACE
    assert row["claim"] == constants.CLAIM_LIFE
    assert row["submission"] == constants.SUBMISSION_LIFE
    assert row["evidence"] == constants.SERVER_EVIDENCE_AGE
    assert row["retries"] == constants.TRANSIENT_RETRIES
    assert row["late_at"] == late_at(row["due_at"]) > row["due_at"] + constants.GRACE
    assert row["late_at"] - row["due_at"] - constants.GRACE == timedelta(microseconds=1)
    assert not row["at_boundary"]
    assert row["after_boundary"]


def test_every_code_that_can_be_produced_has_a_label_and_advice() -> None:
    by_server = {
        code
        for text in _texts().values()
        for found in re.findall(r"'([a-z]+(?:_[a-z]+)+)'", text)
        if (code := found) in REASONS
    }
    producible = by_server | {code.value for code in [*CollectorCode, *AnswerCode]} | {UNRECOGNIZED}
    producible |= {
        "connection_changed",
        "database_restored",
        *REFUSALS,
        *(code.value for code in TRANSIENT_CODES),
    }
    assert set(REASONS) == producible
    for reason in REASONS.values():
        assert reason.label
        assert reason.advice.endswith((".", "?"))


def _texts() -> dict[str, str]:
    python = {str(path.relative_to(ROOM)): path.read_text() for path in ROOM.rglob("*.py")}
    return {**SQL, **{name: text for name, text in python.items() if name != "codes.py"}}


def _function(file: str, name: str) -> str:
    found = re.search(rf"create or replace function {name}\(.*?\$\$;", SQL[file], re.DOTALL)
    assert found is not None
    return found.group(0)


@pytest.mark.parametrize("state", list(State))
async def test_database_refuses_a_row_of_no_shape(database: Database, state: State) -> None:
    """Each state's own shape with one fact too many or too few is refused by the CHECK alone."""
    expression = await database.pool.fetchval(
        "select pg_get_expr(conbin, conrelid) from pg_constraint where conname = 'operations_whole_check'"
    )
    for claim in (0, 3, 7):
        for submission in (0, 1):
            for end in (0, 1):
                for code in (0, 1):
                    shape = f"{state}{claim}{submission}{end}{code}"
                    is_allowed = await database.pool.fetchval(
                        f"select {expression} from ({_row(_facts(state, claim, submission, end, code))}) as operations"
                    )
                    assert is_allowed == (shape in SHAPES), shape


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("now() as ready_at", "now() - interval '1 second' as ready_at"),
        ("3 as lane", "4 as lane"),
        ("'fixed'::text", "'weekly'::text"),
        ("'fixed'::text", "'event_relative'::text"),
        ("null::uuid as event_id", "gen_random_uuid() as event_id"),
        ("null::integer as event_tba_generation", "1 as event_tba_generation"),
        ("null::bigint as offset_ms", "1::bigint as offset_ms"),
        ("now() as ready_at", "null::timestamptz as ready_at"),
        ("null::timestamptz as retry_at", "now() + interval '1 second' as retry_at"),
        ("null::integer as dependency_revision", "1 as dependency_revision"),
        ("null::uuid as dependency_event_id", "gen_random_uuid() as dependency_event_id"),
        ("null::jsonb as result", "jsonb_build_object('note', repeat('x', 9000)) as result"),
    ],
)
async def test_database_refuses_a_row_out_of_bounds(database: Database, right: str, wrong: str) -> None:
    row = _row(_facts(State.PENDING, 0, 0, 0, 0))
    asked = "select operation_is_whole(operations) from ({}) as operations"
    assert await database.pool.fetchval(asked.format(row)) is True
    assert await database.pool.fetchval(asked.format(row.replace(right, wrong))) is False


def _row(facts: str) -> str:
    return f"""
        select {facts}, now() as due_at, now() as ready_at, 3 as lane, 'fixed'::text as schedule_kind,
               null::jsonb as result, null::uuid as event_id, null::bigint as offset_ms,
               null::integer as event_cancel_generation, null::integer as event_tba_generation,
               null::uuid as depends_on, null::integer as dependency_revision, null::uuid as dependency_event_id,
               null::timestamptz as retry_at
    """


def _facts(state: State, claim: int, submission: int, end: int, code: int) -> str:
    fields = (
        ("claim_nonce", "uuid"),
        ("claim_account_id", "uuid"),
        ("claim_worker_id", "uuid"),
        ("claim_journal_id", "uuid"),
        ("claim_fencing_token", "bigint"),
        ("claim_generation", "integer"),
        ("claim_expires_at", "timestamptz"),
    )
    values = {"uuid": "gen_random_uuid()", "bigint": "1", "integer": "1", "timestamptz": "now()"}
    columns = [f"'{state}'::text as state"]
    for n, (name, kind) in enumerate(fields):
        columns.append(f"{values[kind] if n < claim else 'null'}::{kind} as {name}")
    columns.append(f"{'now()' if submission else 'null'}::timestamptz as submitted_at")
    columns.append(f"{'now()' if end else 'null'}::timestamptz as completed_at")
    columns.append(f"{chr(39) + 'x' + chr(39) if code else 'null'}::text as code")
    return ", ".join(columns)
