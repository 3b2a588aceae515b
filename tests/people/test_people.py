"""People are found by one address each, and operators' acts are written down."""

from __future__ import annotations

import pytest

from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.service import add_person, block_person


async def test_an_address_belongs_to_one_person_in_any_case(database: Database) -> None:
    await add_person(database, "sam@example.org", "Sam")
    with pytest.raises(Conflict) as refused:
        await add_person(database, "SAM@example.org", "Samira")
    assert refused.value.code == "email_taken"
    assert await database.pool.fetchval("select count(*) from people") == 1


@pytest.mark.parametrize(
    "email", ["", "sam", "@example.org", "sam@", "s am@example.org", "s" * 250 + "@x.org"]
)
async def test_a_malformed_address_is_refused_with_its_field(database: Database, email: str) -> None:
    with pytest.raises(Invalid) as refused:
        await add_person(database, email, "Sam")
    assert refused.value.field == "email"


@pytest.mark.parametrize("name", ["", "   ", "S\x00am", "S" * 81])
async def test_a_malformed_name_is_refused_with_its_field(database: Database, name: str) -> None:
    with pytest.raises(Invalid) as refused:
        await add_person(database, "sam@example.org", name)
    assert refused.value.field == "display_name"


async def test_only_operators_add_and_block_people(database: Database) -> None:
    person_id = await add_person(database, "sam@example.org", "Sam")
    guest = Actor(person_id, "Sam", is_operator=False)
    with pytest.raises(NotAllowed):
        await add_person(database, "kim@example.org", "Kim", actor=guest)
    with pytest.raises(NotAllowed):
        await block_person(database, guest, person_id)
    operator_id = await add_person(database, "ada@example.org", "Ada", operator=True)
    operator = Actor(operator_id, "Ada", is_operator=True)
    await add_person(database, "kim@example.org", "Kim", actor=operator)
    rows = await database.pool.fetch(
        "select actor_person_id from audit_log where action = 'person.added' order by id"
    )
    assert [row["actor_person_id"] for row in rows] == [None, None, operator_id]


async def test_blocking_nobody_says_so(database: Database) -> None:
    with pytest.raises(NotFound):
        await block_person(database, None, new_id())
