"""Every writer of a fact of the candidate rules is told on in its own transaction, or says why it need not be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.decisions.writers import ANY, FACTS, Writer, in_python, tables_in_sql, writers

import lastcall
from lastcall.access.requests import Claim
from lastcall.app import register
from lastcall.people.data_retention import rules

SOURCE = Path(lastcall.__file__).parent

BEFORE_THE_SERVER = ("db/migrations/",)
"""They run while no scheduler does; a server reads every deadline when it starts (SCH-01)."""

REASONS = {
    ("access/requests.py::write_claim", "join_requests"): "only columns of a claim, see below (ACC-11)",
    ("clubs/deletion.py::ClubDeletion._remove_page", ANY): "of clubs that are deleted, which was signalled",
    ("clubs/deletion.py::_remove_club", "clubs"): "of clubs that are deleted, which was signalled",
    (
        "decisions/sql/2_archive_idle.sql",
        "retention",
    ): "part of the sweep's settling, whose owner reads afterwards",
    ("decisions/sql/4_refresh_join_request.sql", "join_requests"): "the one writer, whose caller signals",
    ("decisions/sql/5_settle_join_request.sql", "join_requests"): "the sweep, whose owner reads afterwards",
    ("decisions/sql/7_refresh_approval.sql", "approvals"): "the one writer, whose caller signals",
    ("decisions/sql/8_settle_approval.sql", "approvals"): "the sweep, whose owner reads afterwards",
    ("people/data_retention.py::Rule.settle", ANY): "what is registered, none of it these facts, see below",
    ("people/personal.py::_delete", ANY): "of tables with a person_id that its callers name, see below",
}
"""Who may write without telling, and why nothing is missed then."""


def untold(found: set[Writer]) -> set[tuple[str, str]]:
    return {(one.place, one.table) for one in found if not one.is_told}


@pytest.mark.clause("ACC-19")
def test_every_writer_of_a_fact_tells_in_its_own_transaction_or_has_a_reason_not_to() -> None:
    found = writers(SOURCE, leave_out=BEFORE_THE_SERVER)
    assert untold(found) == set(REASONS)
    told = {one.table for one in found if one.is_told}
    assert told >= {"join_requests", "retention", "clubs"}


def test_what_the_reasons_say_of_other_tables_and_columns_is_so() -> None:
    register()
    assert rules()
    assert [rule for rule in rules() if tables_in_sql(rule.settle)] == []
    assert Claim.__annotations__.keys().isdisjoint(FACTS["join_requests"])
    text = (SOURCE / "people" / "personal.py").read_text(encoding="utf-8")
    named = re.findall(r"await _delete\(tx, person_id, (.*)\)", text)
    assert named
    assert not any(f'"{table}"' in tables for tables in named for table in FACTS)


IMPORTS = """
from sqlalchemy import delete, insert, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from lastcall.access.tables import Invite, JoinRequest
from lastcall.clubs.tables import Club
from lastcall.decisions.approvals.tables import Approval
from lastcall.decisions.tables import Retention
"""
PLANTED = {
    "a change": "async def f(tx): await tx.execute(update(JoinRequest).where(x).values(status='approved'))",
    "a change of unnamed columns": "async def f(tx): await tx.execute(update(JoinRequest).values(**changes))",
    "an insert": "async def f(tx): await tx.execute(insert(Approval).values(row))",
    "an upsert": "async def f(tx): await tx.execute(upsert(Retention).values(keep=True))",
    "a delete": "async def f(tx): await tx.execute(delete(Retention).where(x))",
    "a pause": "async def f(tx): await tx.execute(update(Club).values(state='paused'))",
    "an invite that moves": "async def f(tx): await tx.execute(update(Invite).values(club_id=other))",
    "an invite that may be there": (
        "async def f(tx): await tx.execute(upsert(Invite).values(x).on_conflict_do_update(set_=x))"
    ),
    "a table by its object": "async def f(tx): await tx.execute(update(Approval.__table__).values(status='pending'))",
    "a table by a variable": "async def f(tx, kind): await tx.execute(update(kind.table).values(activity_at=NOW))",
    "text": "async def f(tx): await tx.execute(text('update clubs set retention_days = 7 where id = :id'))",
    "text over lines": 'async def f(tx): await tx.raw.execute("""\n  delete\n  from join_requests j""")',
    "text that is put together": "async def f(tx): await tx.raw.execute(f'update {table} set status = {x}')",
    "a copy": "async def f(tx): await tx.raw.copy_records_to_table('approvals', records=rows)",
    "a row object": "async def f(session): session.add(JoinRequest(club_id=club_id))",
    "told in another transaction": (
        "async def f(db):\n"
        "    async with db.transaction() as tx: await tx.execute(update(Approval).values(status='pending'))\n"
        "    async with db.transaction() as tx: await refresh(tx, club_id, ids, kind=kind)"
    ),
    "told by one caller of two": (
        "async def _write(tx): await tx.execute(update(Approval).values(status='pending'))\n"
        "async def one(tx):\n    await _write(tx)\n    await refresh(tx, club_id, ids, kind=kind)\n"
        "async def two(tx): await _write(tx)"
    ),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_twin_a_planted_writer_that_tells_nobody_is_found(planted: str) -> None:
    assert untold(in_python("planted.py", IMPORTS + planted))


NOT_FACTS = {
    "a new invite": "async def f(tx): await tx.execute(insert(Invite).values(club_id=club_id, id=new_id()))",
    "other columns": "async def f(tx): await tx.execute(update(JoinRequest).values(email=None))",
    "an invite's end": "async def f(tx): await tx.execute(update(Invite).values(revoked_at=NOW, uses=uses + 1))",
    "other columns in text": "async def f(tx): await tx.execute(text('update invites i set email = null from p'))",
    "another table": "async def f(tx): await tx.execute(text('delete from join_request_notes where x'))",
    "a lock": "async def f(tx): await tx.execute(text('select 1 from join_requests for no key update'))",
    "told": "async def f(tx):\n    await tx.execute(update(Club).values(state='active'))\n    await club_changed(tx)",
    "told by every caller": (
        "async def _write(tx): await tx.execute(update(Approval).values(status='pending'))\n"
        "async def one(tx):\n    await _write(tx)\n    await refresh(tx, club_id, ids, kind=kind)"
    ),
}


@pytest.mark.parametrize("harmless", NOT_FACTS.values(), ids=NOT_FACTS)
def test_what_writes_no_fact_or_tells_is_not_found(harmless: str) -> None:
    assert untold(in_python("harmless.py", IMPORTS + harmless)) == set()


def test_sql_files_are_read_with_their_comments_left_out() -> None:
    assert tables_in_sql("-- update clubs set state = 'x'\nselect 1") == set()
    assert tables_in_sql("perform 1 from clubs c for no key update; insert into people values (1)") == set()
    assert tables_in_sql("update clubs c set slug = 'x', name = f(state, 1) where state = 'y'") == set()
    assert tables_in_sql("update clubs c set slug = 'x', state = 'paused' where c.id = 1") == {"clubs"}
    assert tables_in_sql("with x as (delete from retention r returning 1) select 1") == {"retention"}
