"""What a collector may send that nobody expected, and what one account's collector learns of another's work."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.bodies import BODIES, EVIDENCE
from tests.api.conftest import Caller
from tests.connections.conftest import build_site

from lastcall.db.ids import encode_id, new_id
from lastcall.people.actor import Actor
from lastcall.reads.asking import request_read

ZERO = "a\0b"


def sample(location: str) -> dict[str, Any]:
    place = {"location": location, "worldId": "wrld_1", "population": 3}
    return {"pollId": encode_id(new_id()), "ageMs": 0, "instances": [place]}


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("hello", {**BODIES["hello"], "release": ZERO}),
        ("sample", sample(f"wrld_1:{ZERO}~group(grp_1)")),
        ("sample", sample(f"wrld_1:1~group(grp_1)~region({ZERO})")),
    ],
)
async def test_a_character_that_no_column_takes_is_refused_by_its_field(caller, call, body):
    if call == "sample":
        body = {**body, "lease": await caller.lease()}
    answer = await caller(call, **body)
    assert (answer.status_code, answer.json()["field"]) == (
        422,
        "instances" if call == "sample" else "release",
    )


async def test_another_accounts_read_is_as_unknown_as_one_that_never_was(caller, site, database):
    owner = Actor(site.owner_id, "Owner", is_operator=False)
    await request_read(site.db, owner, site.club_id, "bans", {"n": 2})
    lease = await caller.lease()
    given = (await caller("read_claim", lease=lease)).json()["read"]
    ref = {**lease, "readId": given["readId"], "nonce": given["nonce"]}
    stranger = Caller(caller.client, await build_site(database, 2))
    told = [
        await stranger(
            "read_complete",
            vrchatUserId="usr_2",
            read={**ref, "readId": read_id},
            evidence=EVIDENCE,
            ageMs=0,
            items=[{"strange": 1}],
        )
        for read_id in (given["readId"], encode_id(new_id()))
    ]
    assert [(one.status_code, one.json()) for one in told] == [(200, {"isRecorded": False})] * 2
    assert await site.db.pool.fetchval("select state from provider_reads") == "running"
