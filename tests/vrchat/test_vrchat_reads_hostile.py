"""Every kind of read against a VRChat, or something in front of it, that does not answer as it should."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from reading import change, params_of

from lastcall.vrchat import errors
from lastcall.vrchat.evidence import OwnMember, read_own_member
from lastcall.vrchat.reads import READS, Page, read_kind
from lastcall.vrchat.reads.people import Person
from lastcall.vrchat.simulator import Simulator, faults
from lastcall.vrchat.simulator.faults import Fault
from lastcall.vrchat.simulator.model import made_id
from lastcall.vrchat.transport import Transport

ASKING = [name for name in READS if name not in ("roles", "instance_roles")]
"""The kinds that ask VRChat for something; the others read the evidence at hand."""

PEOPLE = ["members", "requests", "invites", "bans"]
MANY = "[" * 5_000 + "]" * 5_000


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(members=20, is_lively=True) as running:
        yield running


@pytest.fixture
async def own(simulator: Simulator, transport: Transport) -> OwnMember:
    return await read_own_member(transport, simulator.seed.group_id, simulator.seed.bot_id)


async def read(simulator: Simulator, transport: Transport, own: OwnMember, name: str, **more: Any) -> Page:
    kind = read_kind(name)
    params = kind.read_params(params_of(simulator, name) | more)
    return await kind.read(transport, own, params, lambda: None)


def envelope(status: int, message: str) -> Fault:
    body = {"error": {"message": message, "status_code": status}}
    return faults.say(msgspec.json.encode(body).decode(), status)


HOSTILE = {
    "garbage": (faults.garbage(applied=False), errors.Transient),
    "a proxy's 502": (faults.proxy_page(502, applied=False), errors.Transient),
    "a proxy's 200": (faults.proxy_page(200, applied=False), errors.Transient),
    "a proxy's 404": (faults.proxy_page(404, applied=False), errors.Transient),
    "a proxy's 403": (faults.proxy_page(403, applied=False), errors.Transient),
    "absurd nesting": (faults.say(MANY), errors.Transient),
    "a number": (faults.say("42"), errors.SchemaDrift),
    "an empty object": (faults.say("{}"), errors.SchemaDrift),
    "an envelope with status 200": (envelope(200, "Fine"), errors.SchemaDrift),
    "401": (faults.answer(401), errors.Authentication),
    "429": (faults.answer(429, retry_after="7"), errors.RateLimit),
    "503": (faults.answer(503), errors.Transient),
    "408": (faults.answer(408), errors.Transient),
    "a redirect": (faults.redirect(302, "/api/1/auth/user"), errors.Transient),
    "no member any more": (envelope(403, "You're not a member\u2024"), errors.Membership),
    "no member, quoted": (envelope(403, '"You\u2019re not a member."'), errors.Membership),
    "not allowed": (envelope(403, "You're not allowed to see this\u2024"), errors.ProviderPermissions),
    "no such group": (envelope(404, "Can't find group\u01c3"), errors.NoGroup),
    "another status inside": (
        faults.say('{"error":{"message":"x","status_code":404}}', 403),
        errors.Transient,
    ),
    "a dropped connection": (faults.drop(applied=False), errors.Network),
    "noise": (faults.noise(applied=False), errors.Network),
    "dripping": (faults.drip(0.05), errors.Timeout),
    "more than the cap": (faults.say('"' + "x" * 2_100_000 + '"'), errors.SchemaDrift),
}


@pytest.mark.parametrize("how", HOSTILE)
async def test_what_is_no_answer_is_the_right_fault_and_never_a_page(
    simulator: Simulator, transport: Transport, own: OwnMember, how: str
) -> None:
    fault, raised = HOSTILE[how]
    kinds = ["members", "eligibility"] if how == "dripping" else ASKING  # each of them takes its time
    for name in kinds:
        if name == "eligibility" and how == "no such group":
            continue  # a place that is not found is closed, which is shown elsewhere
        simulator.arm(fault, method="GET")
        with pytest.raises(errors.ProviderFault) as caught:
            await read(simulator, transport, own, name)
        assert type(caught.value) is raised, name
        if raised is errors.RateLimit:
            assert caught.value.retry_after == 7


async def test_a_null_is_nobody_for_a_person_and_no_list_anywhere_else(
    simulator: Simulator, transport: Transport, own: OwnMember
) -> None:
    for name in ASKING:
        simulator.arm(faults.say("null"), method="GET", times=1)
        if name in ("member", "eligibility"):
            row = (await read(simulator, transport, own, name)).rows[0]
            assert row.get("status", row.get("destination")) in ("inactive", "closed")
        else:
            with pytest.raises(errors.SchemaDrift):
                await read(simulator, transport, own, name)


# --------------------------------------------------------------------------------------------- spoiled rows


async def truth(simulator: Simulator, transport: Transport, name: str) -> tuple[str, Any]:
    """The path of this kind's request and the document that VRChat would give."""
    group = f"/groups/{simulator.seed.group_id}"
    path, query = {
        "search": (f"{group}/members/search", {"query": "Member", "n": "10"}),
        "member": (f"{group}/members/{simulator.seed.members[0]}", {}),
        "eligibility": ("/auth/user", {}),
    }.get(name, (f"{group}/{name}", {"n": "10"}))
    answer = await transport.exchange("GET", path, params=query)
    return path, msgspec.json.decode(answer.body)


def rows_of(document: Any) -> list[dict[str, Any]]:
    match document:
        case {"results": list(rows)} | {"posts": list(rows)} | list(rows):
            return rows
        case row:
            return [row]


async def spoil(
    simulator: Simulator, transport: Transport, own: OwnMember, name: str, where: str, value: Any = ...
) -> Page:
    """Read with one field of the first row set to ``value``, or left out."""
    path, document = await truth(simulator, transport, name)
    row = rows_of(document)[0]
    *parents, field = where.split(".")
    for parent in parents:
        row = row[parent]
    if value is ...:
        del row[field]
    else:
        row[field] = value
    simulator.arm(faults.say(msgspec.json.encode(document).decode()), path=path)
    return await read(simulator, transport, own, name)


OTHER_GROUP, OTHER_PERSON = made_id("grp", "other"), made_id("usr", "other")
SCOPE, DRIFT = errors.ProviderScope, errors.SchemaDrift
SPOILED = [
    *((name, "groupId", OTHER_GROUP, SCOPE) for name in (*PEOPLE, "search", "member", "posts")),
    *((name, "user.id", OTHER_PERSON, SCOPE) for name in (*PEOPLE, "search", "member")),
    *((name, "userId", ..., DRIFT) for name in (*PEOPLE, "search", "member")),
    *((name, "userId", "../../x", DRIFT) for name in (*PEOPLE, "search", "member")),
    *((name, "groupId", ..., DRIFT) for name in (*PEOPLE, "search", "member", "posts")),
    *((name, "user.displayName", 7, DRIFT) for name in PEOPLE),
    *((name, "user.displayName", "w" * 601, DRIFT) for name in PEOPLE),
    *((name, "roleIds", None, DRIFT) for name in PEOPLE),
    *((name, "roleIds", ["grol_x"] * 101, DRIFT) for name in PEOPLE),
    ("members", "joinedAt", "yesterday", DRIFT),
    ("members", "joinedAt", "2026-01-01T00:00:00", DRIFT),
    ("requests", "createdAt", 12, DRIFT),
    ("bans", "bannedAt", "2026-01-01", DRIFT),
    ("member", "userId", OTHER_PERSON, SCOPE),
    ("member", "membershipStatus", ..., DRIFT),
    ("member", "membershipStatus", "Member!", DRIFT),
    ("posts", "id", ..., DRIFT),
    ("posts", "text", ..., DRIFT),
    ("posts", "text", "w" * 20_001, DRIFT),
    ("posts", "visibility", "Everybody", DRIFT),
    ("instances", "instanceId", f"1~group({OTHER_GROUP})", SCOPE),
    ("instances", "instanceId", "1~region(eu)", SCOPE),
    ("instances", "instanceId", f"1~group({OTHER_GROUP})~group({OTHER_GROUP})", SCOPE),
    ("instances", "world", ..., DRIFT),
    ("instances", "world.id", "../x", DRIFT),
    ("instances", "memberCount", -1, DRIFT),
    ("instances", "memberCount", 1.5, DRIFT),
    ("eligibility", "friends", ..., DRIFT),
    ("eligibility", "friends", "everybody", DRIFT),
    ("eligibility", "id", OTHER_PERSON, errors.Authentication),
    ("eligibility", "id", ..., errors.Authentication),
]


@pytest.mark.parametrize(("name", "where", "value", "raised"), SPOILED, ids=lambda value: repr(value)[:40])
async def test_one_row_that_is_wrong_makes_the_page_no_evidence(
    simulator: Simulator,
    transport: Transport,
    own: OwnMember,
    name: str,
    where: str,
    value: Any,
    raised: type[errors.ProviderFault],
) -> None:
    with pytest.raises(errors.ProviderFault) as caught:
        await spoil(simulator, transport, own, name, where, value)
    assert type(caught.value) is raised


async def test_twin_without_the_look_at_its_group_a_row_of_another_one_is_taken(
    simulator: Simulator, transport: Transport, own: OwnMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Person, "belongs_to", lambda _person, _group_id: None)
    stranger = await spoil(simulator, transport, own, "bans", "groupId", OTHER_GROUP)
    assert len(stranger.items) == 2


HARMLESS = [
    *((name, "user", None) for name in (*PEOPLE, "search", "member")),
    *((name, "badges", {"unknown": [1, 2]}) for name in ASKING),
    ("members", "joinedAt", None),
    ("members", "membershipStatus", ...),
    ("posts", "imageId", ...),
    ("posts", "roleIds", None),
    ("member", "managerNotes", "w" * 10_000),
]


@pytest.mark.parametrize(("name", "where", "value"), HARMLESS, ids=lambda value: repr(value)[:40])
async def test_fields_that_nobody_reads_may_be_new_or_missing(
    simulator: Simulator, transport: Transport, own: OwnMember, name: str, where: str, value: Any
) -> None:
    page = await spoil(simulator, transport, own, name, where, value)
    assert page.rows
    assert all("badges" not in row and "managerNotes" not in row for row in page.rows)


@pytest.mark.parametrize("name", [*PEOPLE, "search", "posts"])
async def test_a_page_longer_than_asked_for_is_refused(
    simulator: Simulator, transport: Transport, own: OwnMember, name: str
) -> None:
    path, document = await truth(simulator, transport, name)
    rows = rows_of(document)
    rows += rows[:1] * (11 - len(rows))
    simulator.arm(faults.say(msgspec.json.encode(document).decode()), path=path)
    with pytest.raises(errors.SchemaDrift):
        await read(simulator, transport, own, name)


async def test_more_instances_than_anybody_can_have_are_refused(
    simulator: Simulator, transport: Transport, own: OwnMember
) -> None:
    path, document = await truth(simulator, transport, "instances")
    many = [document[0] | {"instanceId": f"{number}~group({own.group_id})"} for number in range(1001)]
    simulator.arm(faults.say(msgspec.json.encode(many).decode()), path=path)
    with pytest.raises(errors.SchemaDrift):
        await read(simulator, transport, own, "instances")


async def test_a_page_that_vrchat_cut_short_is_not_the_last_while_it_counts_more(
    simulator: Simulator, transport: Transport, own: OwnMember
) -> None:
    path, document = await truth(simulator, transport, "search")
    del document["results"][4:]
    simulator.arm(faults.say(msgspec.json.encode(document).decode()), path=path)
    assert (await read(simulator, transport, own, "search")).next_offset == 4
    document["results"].clear()
    simulator.arm(faults.say(msgspec.json.encode(document).decode()), path=path)
    assert (await read(simulator, transport, own, "search", offset=4)).next_offset is None


async def test_a_total_below_what_was_given_ends_the_list(
    simulator: Simulator, transport: Transport, own: OwnMember
) -> None:
    path, document = await truth(simulator, transport, "search")
    document["total"] = 0
    simulator.arm(faults.say(msgspec.json.encode(document).decode()), path=path)
    page = await read(simulator, transport, own, "search")
    assert (len(page.items), page.next_offset) == (10, None)


async def test_a_full_page_without_a_total_is_followed_by_an_empty_one(
    simulator: Simulator, transport: Transport, own: OwnMember
) -> None:
    page = await read(simulator, transport, own, "requests", n=5)
    assert page.next_offset == 5
    after = await read(simulator, transport, own, "requests", n=5, offset=5)
    assert (after.items, after.next_offset) == ((), None)


async def test_look_alike_characters_in_names_stay_and_harm_nothing(
    simulator: Simulator, transport: Transport, own: OwnMember
) -> None:
    name = "\u202eMr\u2024 \u01c3 <b>\U0001f389"
    page = await spoil(simulator, transport, own, "members", "user.displayName", name)
    assert page.rows[0]["displayName"] == name


async def test_a_second_factor_asked_in_the_middle_is_no_list_of_friends(
    simulator: Simulator, transport: Transport, own: OwnMember
) -> None:
    simulator.world.second_factors.clear()
    with pytest.raises(errors.Authentication):
        await read(simulator, transport, own, "eligibility", worldId=None, instanceId=None)
    change(simulator, "end_sessions", user_id=simulator.seed.bot_id)
    for name in ASKING:
        with pytest.raises(errors.Authentication):
            await read(simulator, transport, own, name)
