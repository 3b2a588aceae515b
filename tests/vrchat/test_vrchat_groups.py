"""What the account is to a group, and its way in and out: one write each, judged by its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import pytest
from reading import change

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat import errors, groups
from lastcall.vrchat.groups import GroupLook, join, leave, look_at_group
from lastcall.vrchat.joining import should_join
from lastcall.vrchat.simulator import Simulator, faults, shapes
from lastcall.vrchat.simulator.faults import Fault
from lastcall.vrchat.simulator.model import made_id
from lastcall.vrchat.transport import Transport
from lastcall.vrchat.writes.judging import AnswerCode, Judgement


async def look_here(simulator: Simulator, transport: Transport) -> GroupLook:
    return await look_at_group(transport, simulator.seed.group_id, simulator.seed.bot_id)


async def join_here(simulator: Simulator, transport: Transport) -> Judgement:
    return await join(transport, simulator.seed.group_id, simulator.seed.bot_id)


async def leave_here(simulator: Simulator, transport: Transport) -> Judgement:
    return await leave(transport, simulator.seed.group_id, simulator.seed.bot_id)


Act = Callable[[Simulator, Transport], Awaitable[Judgement]]


# ------------------------------------------------------------------------------------------------- looking


async def test_a_member_sees_its_rights_and_the_size_of_the_group(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    before = simulator.clock.boot()
    seen = await look_here(simulator, transport)
    assert (seen.group_id, seen.name, seen.privacy, seen.join_state) == (
        seed.group_id, "Demo Club", "default", "request",
    )  # fmt: skip
    assert (seen.membership, seen.member_count) == ("member", 8)
    assert seen.own is not None
    assert seen.own.has_grants(("group-bans-manage",))
    assert seen.own.asked_at == seen.asked_at >= before
    assert len(simulator.arrivals) == 1


STANDINGS = {
    "inactive": (),
    "requested": ("ask_to_join",),
    "invited": ("invite",),
    "banned": ("ban",),
    "userblocked": ("block",),
}


@pytest.mark.parametrize("standing", STANDINGS)
async def test_who_is_no_member_is_seen_for_what_it_is_and_has_no_rights(
    simulator: Simulator, transport: Transport, standing: str
) -> None:
    change(simulator, "remove_member", user_id=simulator.seed.bot_id)
    for name in STANDINGS[standing]:
        change(simulator, name, user_id=simulator.seed.bot_id)
    seen = await look_here(simulator, transport)
    assert (seen.membership, seen.own) == (standing, None)


async def test_a_private_group_is_there_for_the_invited_and_hidden_from_others(
    simulator: Simulator, transport: Transport
) -> None:
    change(simulator, "set_privacy", privacy="private")
    assert (await look_here(simulator, transport)).privacy == "private"
    change(simulator, "remove_member", user_id=simulator.seed.bot_id)
    with pytest.raises(errors.NoGroup):
        await look_here(simulator, transport)
    change(simulator, "invite", user_id=simulator.seed.bot_id)
    assert (await look_here(simulator, transport)).membership == "invited"


@pytest.mark.parametrize(
    ("changes", "raised"),
    [
        ({"id": made_id("grp", "other")}, errors.ProviderScope),
        ({"name": None}, errors.SchemaDrift),
        ({"joinState": "OPEN"}, errors.SchemaDrift),
        ({"membershipStatus": 1}, errors.SchemaDrift),
        ({"membershipStatus": None, "myMember": None}, errors.SchemaDrift),
        ({"myMember": None}, errors.SchemaDrift),
        ({"myMember.membershipStatus": "inactive"}, errors.SchemaDrift),
        ({"myMember.userId": made_id("usr", "other")}, errors.ProviderScope),
        ({"memberCount": -1}, errors.SchemaDrift),
        ({"roles": None}, errors.SchemaDrift),
    ],
    ids=repr,
)
async def test_a_group_that_contradicts_itself_is_not_seen(
    simulator: Simulator,
    transport: Transport,
    changes: dict[str, object],
    raised: type[errors.ProviderFault],
) -> None:
    seed = simulator.seed
    document = shapes.group(simulator.world.groups[seed.group_id], seed.bot_id, with_roles=True)
    for where, value in changes.items():
        parent, _, field = where.rpartition(".")
        (document[parent] if parent else document)[field] = value
    simulator.arm(faults.say(msgspec.json.encode(document).decode()))
    with pytest.raises(errors.ProviderFault) as caught:
        await look_here(simulator, transport)
    assert type(caught.value) is raised


async def test_the_groups_word_counts_where_its_record_of_the_account_says_less(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    document = shapes.group(simulator.world.groups[seed.group_id], seed.bot_id, with_roles=False)
    document |= {"membershipStatus": "userblocked"}
    document["myMember"] |= {"membershipStatus": "inactive"}
    simulator.arm(faults.say(msgspec.json.encode(document).decode()))
    assert (await look_here(simulator, transport)).membership == "userblocked"
    del document["membershipStatus"]
    simulator.arm(faults.say(msgspec.json.encode(document).decode()))
    assert (await look_here(simulator, transport)).membership == "inactive"


# ----------------------------------------------------------------------------------------- whether to join

STATES = ("connecting", "awaiting_approval", "awaiting_invite", "active", "degraded", "auth_required",
          "disconnecting", "disconnected", "blocked", "of_a_later_release")  # fmt: skip
MEMBERSHIPS = ("member", "inactive", "requested", "invited", "banned", "userblocked", "of_a_later_release")
JOIN_STATES = ("open", "request", "invite", "closed", "of_a_later_release")


def test_the_account_joins_when_invited_while_it_waits_and_else_only_by_an_open_door_while_connecting() -> (
    None
):
    def seen(membership: str, join_state: str) -> GroupLook:
        return GroupLook("grp_1", "Club", "default", join_state, membership, None, None, 0.0)

    joins = {
        (state, membership, join_state)
        for state in STATES
        for membership in MEMBERSHIPS
        for join_state in JOIN_STATES
        if should_join(state, seen(membership, join_state))
    }
    waiting = ("connecting", "awaiting_approval", "awaiting_invite")
    assert joins == {
        *((state, "invited", door) for state in waiting for door in JOIN_STATES),
        ("connecting", "inactive", "open"),
        ("connecting", "inactive", "request"),
    }


# ---------------------------------------------------------------------------------------- joining, leaving


@pytest.mark.parametrize(
    ("join_state", "is_invited", "comes_to"),
    [("open", False, "member"), ("request", False, "requested"), ("closed", True, "member")],
)
async def test_joining_is_one_write_that_says_what_came_of_it(
    simulator: Simulator, transport: Transport, join_state: str, *, is_invited: bool, comes_to: str
) -> None:
    change(simulator, "remove_member", user_id=simulator.seed.bot_id)
    change(simulator, "set_join_state", join_state=join_state)
    if is_invited:
        change(simulator, "invite", user_id=simulator.seed.bot_id)
    judged = await join_here(simulator, transport)
    assert judged == Judgement(Outcome.SUCCEEDED, result={"membership": comes_to})
    assert (await look_here(simulator, transport)).membership == comes_to
    assert len(simulator.ledger.of(target=simulator.seed.bot_id)) == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, AnswerCode.ALREADY_MEMBER),
        ({"ban": {}}, Code.PROVIDER_PERMISSIONS),
        ({"block": {}}, Code.PROVIDER_ERROR),
        ({"remove_member": {}, "ask_to_join": {}}, Code.PROVIDER_ERROR),
    ],
    ids=repr,
)
async def test_a_door_that_stays_shut_is_a_definite_no(
    simulator: Simulator, transport: Transport, changes: dict[str, dict[str, str]], code: str
) -> None:
    for name in changes:
        change(simulator, name, user_id=simulator.seed.bot_id)
    judged = await join_here(simulator, transport)
    assert (judged.outcome, judged.code, judged.fault) == (Outcome.REJECTED, code, None)
    assert simulator.ledger.entries == []


async def test_a_group_that_the_account_blocked_stays_blocked(
    simulator: Simulator, transport: Transport
) -> None:
    change(simulator, "block", user_id=simulator.seed.bot_id)
    change(simulator, "set_join_state", join_state="open")
    await join_here(simulator, transport)
    assert (await look_here(simulator, transport)).membership == "userblocked"


async def test_twin_without_the_word_about_blocks_the_account_is_in_a_group_that_it_blocked(
    simulator: Simulator, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(simulator, "block", user_id=simulator.seed.bot_id)
    change(simulator, "set_join_state", join_state="open")
    monkeypatch.setattr(groups, "KEEP_BLOCKS", {})
    await join_here(simulator, transport)
    assert (await look_here(simulator, transport)).membership == "member"


async def test_leaving_is_one_write_and_being_outside_already_is_as_good(
    simulator: Simulator, transport: Transport
) -> None:
    assert await leave_here(simulator, transport) == Judgement(Outcome.SUCCEEDED)
    assert (await look_here(simulator, transport)).membership == "inactive"
    assert await leave_here(simulator, transport) == Judgement(Outcome.SUCCEEDED)
    change(simulator, "delete_group")
    assert await leave_here(simulator, transport) == Judgement(Outcome.SUCCEEDED)
    assert [entry.action for entry in simulator.ledger.entries] == ["group.member.leave"]


def said(status: int, document: object) -> Fault:
    return faults.say(msgspec.json.encode(document).decode(), status)


UNCLEAR = {
    "a dropped reply": faults.drop(applied=True),
    "garbage": faults.garbage(applied=True),
    "a proxy's page": faults.proxy_page(502, applied=False),
    "a proxy's 404": faults.proxy_page(404, applied=False),
    "a proxy's 200": faults.proxy_page(200, applied=False),
    "5xx": faults.answer(503, applied=True),
    "dripping": faults.drip(0.05),
    "a redirect": faults.redirect(307, "/api/1/groups/grp_x/leave"),
    "null": faults.say("null"),
    "another person's record": said(
        200,
        {"groupId": "grp_1", "userId": made_id("usr", "other"), "membershipStatus": "inactive"},
    ),
}


@pytest.mark.parametrize("act", [join_here, leave_here])
@pytest.mark.parametrize("how", UNCLEAR)
async def test_what_proves_nothing_stays_unknown_and_nothing_is_sent_again(
    simulator: Simulator, transport: Transport, how: str, act: Act
) -> None:
    if act is join_here:
        change(simulator, "remove_member", user_id=simulator.seed.bot_id)
    simulator.arm(UNCLEAR[how], method="POST")
    judged = await act(simulator, transport)
    assert judged.outcome is Outcome.INDETERMINATE
    assert [arrival.method for arrival in simulator.arrivals] == ["POST"]
    assert len(simulator.ledger.entries) <= 1


@pytest.mark.parametrize("act", [join_here, leave_here])
@pytest.mark.parametrize(
    ("fault", "code", "shared"),
    [
        (faults.answer(429, retry_after="90"), Code.RATE_LIMIT, errors.RateLimit),
        (faults.answer(401), Code.AUTHENTICATION, errors.Authentication),
        (faults.answer(404), Code.VISIBILITY, None),
        (faults.answer(403), Code.PROVIDER_PERMISSIONS, None),
    ],
    ids=repr,
)
async def test_what_the_answer_says_about_the_account_is_passed_on(
    simulator: Simulator,
    transport: Transport,
    act: Act,
    fault: Fault,
    code: str,
    shared: type[errors.ProviderFault] | None,
) -> None:
    simulator.arm(fault, method="POST")
    judged = await act(simulator, transport)
    assert (judged.outcome, judged.code) == (Outcome.REJECTED, code)
    assert (type(judged.fault) if judged.fault is not None else None) is shared


async def test_a_success_envelope_or_the_record_of_an_ended_standing_proves_the_leaving(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    record = {"groupId": seed.group_id.upper(), "userId": seed.bot_id, "membershipStatus": "inactive"}
    for document in ({"success": {"message": "Left", "status_code": 200}}, record):
        simulator.arm(said(200, document), method="POST")
        assert (await leave_here(simulator, transport)).outcome is Outcome.SUCCEEDED
    simulator.arm(said(200, record | {"membershipStatus": "member"}), method="POST")
    assert (await leave_here(simulator, transport)).outcome is Outcome.INDETERMINATE


async def test_the_last_look_keeps_the_account_where_it_is(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    for act in (join, leave):
        judged = await act(transport, seed.group_id, seed.bot_id, may_send=lambda: False)
        assert (judged.outcome, judged.code) == (Outcome.REJECTED, Code.NOT_ATTEMPTED)
    assert simulator.arrivals == []
