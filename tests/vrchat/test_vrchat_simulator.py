"""The simulator's own promises: its ledger, its barriers, its limits, its quirks, and its control pages."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from lastcall.clock import SYSTEM_CLOCK
from lastcall.testing.waiting import eventually
from lastcall.vrchat import errors, evidence
from lastcall.vrchat.cookies import Cookies
from lastcall.vrchat.reads import read_kind
from lastcall.vrchat.session import Credentials, Session
from lastcall.vrchat.simulator import (
    BOT_PASSWORD,
    BOT_TOTP_SECRET,
    BOT_USERNAME,
    RemoteSimulator,
    Simulator,
    faults,
    read_ledger,
)
from lastcall.vrchat.simulator.edits import EDITS, edit
from lastcall.vrchat.simulator.model import made_id
from lastcall.vrchat.transport import Answer, NoAnswer, Transport, user_agent_for
from lastcall.vrchat.writes import Seen, write_kind


def role_path(simulator: Simulator, member: int = 0) -> str:
    seed = simulator.seed
    return f"/groups/{seed.group_id}/members/{seed.members[member]}/roles/{seed.role_ids[0]}"


async def test_two_simulators_are_seeded_alike_and_nobody_in_them_is_real(simulator: Simulator) -> None:
    other = Simulator(members=8)
    assert other.seed == simulator.seed
    assert len(simulator.world.groups[simulator.seed.group_id].members) == 8
    names = {simulator.world.users[member].display_name for member in simulator.seed.members}
    assert names == {f"Member {number}" for number in range(1, 7)}


async def test_every_accepted_write_is_in_the_ledger_and_its_file_before_it_is_answered(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger"
    async with Simulator(members=8, ledger_file=path) as simulator:
        transport = await signed_in(simulator)
        simulator.arm(faults.hold("late", "applied"), method="PUT")
        sending = asyncio.create_task(transport.send_once("PUT", role_path(simulator)))
        await simulator.reached("late")
        assert [entry.number for entry in read_ledger(path)] == [1]
        simulator.release("late")
        assert isinstance(await sending, Answer)
        await transport.send_once("PUT", role_path(simulator))
        await transport.close()
        assert [(entry.number, entry.changed) for entry in read_ledger(path)] == [(1, True), (2, False)]
        assert simulator.ledger.entries == read_ledger(path)
    async with Simulator(members=8, ledger_file=path) as simulator:
        transport = await signed_in(simulator)
        await transport.send_once("PUT", role_path(simulator))
        await transport.close()
    assert [entry.number for entry in read_ledger(path)] == [1, 2, 3]


async def signed_in(simulator: Simulator) -> Transport:
    transport = Transport(simulator.url, user_agent_for("ops@example.org"), Cookies(), SYSTEM_CLOCK)

    async def no_code(method: str) -> str:
        raise AssertionError(method)

    credentials = Credentials(BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET)
    await Session(transport, simulator.seed.bot_id).sign_in(credentials, no_code)
    return transport


@pytest.mark.parametrize(
    ("stage", "is_applied"), [("arrived", False), ("applied", True), ("half_sent", True)]
)
async def test_a_held_request_stands_where_it_was_told_to(
    simulator: Simulator, transport: Transport, stage: faults.Stage, is_applied: bool
) -> None:
    simulator.arm(faults.hold("here", stage), method="PUT")
    sending = asyncio.create_task(transport.send_once("PUT", role_path(simulator)))
    await simulator.reached("here")
    assert len(simulator.ledger.entries) == int(is_applied)
    assert not sending.done()
    simulator.release("here")
    answer = await sending
    assert isinstance(answer, Answer)
    assert msgspec.json.decode(answer.body) == [simulator.seed.role_ids[0]]
    assert len(simulator.ledger.entries) == 1


async def test_a_request_whose_sender_died_is_applied_all_the_same(
    simulator: Simulator, transport: Transport
) -> None:
    simulator.arm(faults.hold("here", "arrived"), method="PUT")
    sending = asyncio.create_task(transport.send_once("PUT", role_path(simulator)))
    await simulator.reached("here")
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    simulator.release("here")
    await eventually(lambda: simulator.ledger.entries)
    assert len(simulator.ledger.entries) == 1


async def test_past_the_limit_429_and_far_past_it_garbage(simulator: Simulator, transport: Transport) -> None:
    simulator.site.requests_per_minute = 3
    for _ in range(3):
        assert (await transport.exchange("GET", "/auth/user")).status == 200
    with pytest.raises(errors.RateLimit) as caught:
        await transport.get("/auth/user", dict)
    assert caught.value.retry_after is not None
    assert 1 <= caught.value.retry_after <= 60
    for _ in range(5):
        await transport.exchange("GET", "/auth/user")
    with pytest.raises(errors.Transient, match="no JSON"):
        await transport.get("/auth/user", dict)


async def test_an_invitation_unbans_unless_the_block_is_to_stand(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    group = simulator.world.groups[seed.group_id]
    edit(simulator.clock, simulator.world, seed.group_id, "ban", user_id=seed.strangers[0])
    own = await evidence.read_own_member(transport, seed.group_id, seed.bot_id)
    kind = write_kind("invite_member")
    write = kind.plan(kind.read({"targetUserId": seed.strangers[0]}), Seen(own))
    judgement = kind.judge(write, await transport.send_once(write.method, write.path, write.json))
    assert (judgement.outcome, judgement.code) == ("rejected", "invitation_refused")
    assert seed.strangers[0] in group.bans
    await transport.send_once("POST", write.path, {"userId": seed.strangers[0]})
    assert seed.strangers[0] not in group.bans
    assert seed.strangers[0] in group.invitations


KIND_RUNS = {
    "approve_request": ("stranger", None, "already_member"),
    "reject_request": ("stranger", None, "no_join_request"),
    "invite_member": ("stranger", None, "already_invited"),
    "cancel_member_invite": ("stranger", None, "not_invited"),
    "remove_member": ("member", None, "visibility"),
    "ban_member": ("member", None, "already_banned"),
    "unban_member": ("stranger", None, "not_banned"),
    "assign_role": ("member", "role", None),
    "remove_role": ("member", "role", None),
    "publish_post": (None, "post", None),
    "edit_post": (None, "post", None),
    "delete_post": (None, None, "visibility"),
}
"""Who it is about, what else is in the payload, and what a second time is refused for."""

PREPARED = {
    "approve_request": "ask_to_join",
    "reject_request": "ask_to_join",
    "unban_member": "ban",
}


async def run_kind(
    simulator: Simulator, transport: Transport, kind: str, payload: dict[str, object]
) -> tuple[str, str | None]:
    """From evidence to judgement, as the collector does it."""
    seed = simulator.seed
    chosen = write_kind(kind)
    reviewed = chosen.read(payload)
    own = await evidence.read_own_member(transport, seed.group_id, seed.bot_id)
    write = chosen.plan(reviewed, await chosen.look(transport, reviewed, own, lambda: None))
    judgement = chosen.judge(write, await transport.send_once(write.method, write.path, write.json))
    return judgement.outcome.value, judgement.code


@pytest.mark.parametrize("kind", KIND_RUNS)
async def test_each_kind_runs_through_from_evidence_to_judgement_and_a_second_time(
    simulator: Simulator, transport: Transport, kind: str
) -> None:
    seed = simulator.seed
    who, also, again = KIND_RUNS[kind]
    target = seed.members[0] if who == "member" else seed.strangers[0]
    payload: dict[str, object] = {} if who is None else {"targetUserId": target}
    if kind in PREPARED:
        edit(simulator.clock, simulator.world, seed.group_id, PREPARED[kind], user_id=target)
    if kind == "cancel_member_invite":
        await run_kind(simulator, transport, "invite_member", payload)
    if kind in ("edit_post", "delete_post"):
        edit(simulator.clock, simulator.world, seed.group_id, "publish_post", title="Before")
        payload["postId"] = made_id("not", seed.group_id, 1)
    if also == "role":
        payload["roleId"] = seed.role_ids[1].upper().replace("GROL", "grol")
    if also == "post":
        payload |= {"title": "Tonight!", "text": "At nine.", "visibility": "group", "sendNotification": True}
        payload["roleIds"] = [seed.role_ids[2]]
    simulator.ledger.entries.clear()
    assert await run_kind(simulator, transport, kind, payload) == ("succeeded", None)
    second = await run_kind(simulator, transport, kind, payload)
    assert second == ("succeeded" if again is None else "rejected", again)
    assert len(simulator.ledger.entries) == (2 if again is None else 1)


async def test_who_is_in_too_many_groups_is_refused_for_that_and_the_account_keeps_its_grants(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    for name in ("ask_to_join", "join_many_groups"):
        edit(simulator.clock, simulator.world, seed.group_id, name, user_id=seed.strangers[0])
    payload: dict[str, object] = {"targetUserId": seed.strangers[0]}
    assert await run_kind(simulator, transport, "approve_request", payload) == ("rejected", "too_many_groups")
    assert await run_kind(simulator, transport, "reject_request", payload) == ("succeeded", None)


async def test_an_edited_post_is_what_was_reviewed_although_vrchat_keeps_what_is_left_out(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    group = simulator.world.groups[seed.group_id]
    post: dict[str, object] = {
        "title": "Tonight.",
        "text": "!",
        "visibility": "group",
        "sendNotification": False,
    }
    to_some = {"roleIds": [seed.role_ids[0]], "imageId": f"file_{seed.group_id.removeprefix('grp_')}"}
    assert await run_kind(simulator, transport, "publish_post", post | to_some) == ("succeeded", None)
    (post_id,) = group.posts
    kept = group.posts[post_id]
    assert (kept.role_ids, kept.image_id, kept.title) == (*to_some.values(), "Tonight\u2024")
    # Left out of the request, both stay; so what is left open in the review is named in the write.
    path = f"/groups/{seed.group_id}/posts/{post_id}"
    await transport.send_once("PUT", path, post)
    assert (kept.role_ids, kept.image_id) == tuple(to_some.values())
    assert await run_kind(simulator, transport, "edit_post", post | {"postId": post_id}) == (
        "succeeded",
        None,
    )
    assert (kept.role_ids, kept.image_id) == ([], None)


async def test_the_two_meanings_of_a_members_403_are_kept_apart(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    own = await evidence.read_own_member(transport, seed.group_id, seed.bot_id)
    kind = read_kind("member")
    params = kind.read_params({"targetUserId": seed.members[0]})
    for grant in ("group-members-viewall", "group-members-manage"):
        edit(simulator.clock, simulator.world, seed.group_id, "take_grant", user_id=seed.bot_id, grant=grant)
    with pytest.raises(errors.ProviderPermissions):
        await kind.read(transport, own, params, lambda: None)
    edit(simulator.clock, simulator.world, seed.group_id, "remove_member", user_id=seed.bot_id)
    with pytest.raises(errors.Membership):
        await kind.read(transport, own, params, lambda: None)


async def test_every_edit_changes_what_is_read(simulator: Simulator, transport: Transport) -> None:
    seed = simulator.seed
    location = f"{seed.world_ids[0]}:1~region(eu)~group({seed.group_id})~groupAccessType(members)"

    def state() -> str:
        return repr((simulator.world, sorted(map(sorted, simulator.world.friendships))))

    before = state()
    arguments = {
        "befriend": {"user_id": seed.bot_id, "other_id": seed.members[1]},
        "unfriend": {"user_id": seed.bot_id, "other_id": seed.members[1]},
        "open_instance": {"world_id": seed.world_ids[0], "number": "1"},
        "enter_instance": {"location": location, "user_id": seed.members[1]},
        "leave_instance": {"location": location, "user_id": seed.members[1]},
        "close_instance": {"location": location},
        "empty_instance": {"location": location},
        "take_grant": {"user_id": seed.bot_id, "grant": "group-bans-manage"},
        "give_grant": {"user_id": seed.bot_id, "grant": "group-data-manage"},
        "remove_member": {"user_id": seed.members[0]},
        "add_member": {"user_id": seed.strangers[0]},
        "ban": {"user_id": seed.strangers[1]},
        "unban": {"user_id": seed.strangers[1]},
        "invite": {"user_id": seed.strangers[3]},
        "block": {"user_id": seed.strangers[4]},
        "ask_to_join": {"user_id": seed.strangers[2]},
        "join_many_groups": {"user_id": seed.strangers[2]},
        "withdraw_request": {"user_id": seed.strangers[2]},
        "publish_post": {"title": "Tonight"},
        "delete_post": {"post_id": made_id("not", seed.group_id, 1)},
        "delete_role": {"role_id": seed.role_ids[3]},
        "transfer": {"user_id": seed.members[2]},
        "set_privacy": {"privacy": "private"},
        "set_join_state": {"join_state": "closed"},
        "rename": {"to": "Another Name"},
        "log": {"event": "group.update", "user_id": seed.members[0]},
        "age": {"user_id": seed.bot_id, "joined_on": "2026-08-01"},
    }
    assert {*arguments, "end_sessions", "delete_group"} == set(EDITS)
    for name, values in arguments.items():
        edit(simulator.clock, simulator.world, seed.group_id, name, **values)
        after = state()
        assert after != before, name
        before = after
    own = await evidence.read_own_member(transport, seed.group_id, seed.bot_id)
    assert (own.owner_id, own.privacy, len(own.roles)) == (seed.members[2], "private", 3)
    edit(simulator.clock, simulator.world, seed.group_id, "delete_group")
    with pytest.raises(errors.NoGroup):
        await evidence.read_own_member(transport, seed.group_id, seed.bot_id)


# ------------------------------------------------------------------------------------- from another process


async def test_another_process_can_do_and_see_the_same(simulator: Simulator, transport: Transport) -> None:
    remote = RemoteSimulator(simulator.url)
    assert await remote.seed() == simulator.seed
    await remote.arm(faults.hold("far", "applied"), method="PUT")
    sending = asyncio.create_task(transport.send_once("PUT", role_path(simulator)))
    await remote.reached("far")
    assert [entry.action for entry in await remote.ledger()] == ["group.member.role.assign"]
    await remote.release("far")
    assert isinstance(await sending, Answer)
    assert [(arrival.method, arrival.status) for arrival in await remote.arrivals()] == [("PUT", 200)]
    assert simulator.connections == 1
    await remote.edit("set_privacy", privacy="private")
    assert simulator.world.groups[simulator.seed.group_id].privacy == "private"
    await remote.arm(faults.drop(applied=False), times=100)
    await remote.disarm()
    assert (await transport.exchange("GET", "/auth/user")).status == 200
    with pytest.raises(TimeoutError):
        await remote.reached("nowhere", timeout=0)
    await remote.reset()
    assert simulator.world.sessions == {}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("dance", {}), ("ban", {}), ("ban", {"user_id": "usr_nobody"}), ("ban", {"x": "y"})],
)
async def test_an_unknown_edit_is_refused_with_a_sentence(
    simulator: Simulator, name: str, arguments: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="cannot do that"):
        await RemoteSimulator(simulator.url).edit(name, **arguments)


async def test_broken_http_and_unknown_paths_do_not_bring_the_simulator_down(
    simulator: Simulator, transport: Transport
) -> None:
    for noise in (b"\x00\xff\r\n\r\n", b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", b""):
        _, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
        writer.write(noise)
        writer.close()
        await writer.wait_closed()
    with pytest.raises(errors.NotVisible):
        await transport.get("/nowhere", dict)
    assert (await transport.exchange("GET", "/auth/user")).status == 200
    assert [arrival.method for arrival in simulator.arrivals] == ["GET", "GET"]


RUN = """
import asyncio, pathlib, sys
from lastcall.vrchat.simulator import run
asyncio.run(run(host="127.0.0.1", port=0, members=5, requests_per_minute=0,
                ledger_file=pathlib.Path(sys.argv[1]), ready=lambda s: print(s.url, flush=True)))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_as_a_process_it_serves_until_it_is_told_to_stop(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RUN, str(tmp_path / "ledger"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
    assert len((await RemoteSimulator(url).seed()).members) == 3
    process.send_signal(number)
    assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_a_reply_cut_in_the_middle_is_no_answer(simulator: Simulator, transport: Transport) -> None:
    simulator.arm(faults.hold("half", "half_sent"), method="PUT")
    sending = asyncio.create_task(transport.send_once("PUT", role_path(simulator)))
    await simulator.reached("half")
    await simulator.stop()
    assert isinstance(await sending, NoAnswer)
    assert len(simulator.ledger.entries) == 1
