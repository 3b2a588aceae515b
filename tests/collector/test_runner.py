"""The life of the process: hello, waiting, draining, losing the server, stopping."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import msgspec
import pytest
import structlog
from collector_bench import Bench, nobody_to_ask
from scripted_server import Drop, Refusal

from lastcall.collector.config import AccountConfig, CollectorConfig
from lastcall.collector.main import serve
from lastcall.collector.runner import MOST_PASSES
from lastcall.collector.server import Refused, Server, Unreachable
from lastcall.collector.state import StateFolder, fresh_id
from lastcall.errors import Invalid, Unavailable
from lastcall.protocol import messages as m
from lastcall.protocol.outcomes import Outcome
from lastcall.protocol.steps import Step
from lastcall.testing.waiting import eventually
from lastcall.vrchat.session import Credentials


async def test_hello_comes_before_anything_is_leased_and_names_this_worker_and_journal(bench: Bench) -> None:
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("complete")
    hello = bench.server.of("hello")[0]
    assert bench.server.names()[0] == "hello"
    assert hello.is_journal_intact
    assert hello.submissions == ()
    assert hello.vrchat_user_id == bench.simulator.seed.bot_id
    claim = bench.server.of("claim")[0]
    assert (claim.worker_id, claim.journal_id) == (hello.worker_id, hello.journal_id)


@pytest.mark.clause("WRK-16")
async def test_a_pass_drains_what_is_due_under_one_lease(bench: Bench) -> None:
    seed = bench.simulator.seed
    for member in seed.members[:5]:
        await bench.server.add("assign_role", targetUserId=member, roleId=seed.role_ids[0])
    await bench.server.until("release")
    assert len(bench.server.of("complete")) == 5
    assert len(bench.server.of("lease")) == 1
    assert len(bench.server.of("claim")) == 6, "the last one finds nothing"
    assert bench.writes() == 5


@pytest.mark.clause("WRK-16")
async def test_a_pass_takes_nothing_new_after_four_minutes_and_the_next_one_goes_on(bench: Bench) -> None:
    bench.hold(Step.COMPLETE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.members[1])
    await bench.at(Step.COMPLETE_ANSWERED)
    await bench.advance(241)
    bench.release(Step.COMPLETE_ANSWERED)
    await bench.server.until("release")
    assert len(bench.server.of("claim")) == 1
    await bench.server.until("complete", 2)
    assert len(bench.server.of("lease")) == 2


async def test_the_lease_is_renewed_while_a_pass_lasts(bench: Bench) -> None:
    bench.hold(Step.CLAIM_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.CLAIM_ANSWERED)
    await bench.time.run_at(100)
    await bench.server.until("renew", 2)
    assert len(bench.server.of("renew")) >= 2
    bench.release(Step.CLAIM_ANSWERED)


@pytest.mark.clause("BUD-02")
async def test_a_limit_that_is_lowered_during_a_pass_holds_for_the_rest_of_it(bench: Bench) -> None:
    async def leased(sent: m.Lease) -> m.Message:
        return msgspec.structs.replace(await usual(sent), life_ms=60_000)

    async def lowered(_sent: m.Renew) -> m.Message:
        return m.RenewAnswer(life_ms=60_000, requests_per_minute=1, account_requests_per_minute=30)

    usual = bench.server.lease
    bench.server.handlers |= {"lease": leased, "renew": lowered}
    bench.hold(Step.COMPLETE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.members[1])
    await bench.at(Step.COMPLETE_ANSWERED)
    await bench.time.run_at(50)
    await bench.server.until("renew", 2)
    await bench.time.run_at(1)
    bench.release(Step.COMPLETE_ANSWERED)
    rejected = await bench.server.until("reject")
    assert rejected.code == "operation_budget_too_low"
    assert len(bench.server.of("lease")) == 1
    assert bench.writes() == 1


async def test_a_lost_lease_ends_the_pass_after_the_operation_in_hand(bench: Bench) -> None:
    async def lost(_sent: m.Renew) -> m.Message:
        raise Refusal(409, "lease_lost")

    bench.server.handlers["renew"] = lost
    bench.hold(Step.CLAIM_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.CLAIM_ANSWERED)
    await bench.advance(151)
    await bench.server.until("renew")
    bench.release(Step.CLAIM_ANSWERED)
    await bench.server.until("release")
    assert len(bench.server.of("claim")) == 1


async def test_a_connection_that_nothing_can_be_done_for_is_left_alone(bench: Bench) -> None:
    usual = bench.server.lease

    async def waiting(sent: m.Lease) -> m.Message:
        answer = await usual(sent)
        assert isinstance(answer, m.LeaseAnswer)
        return m.LeaseAnswer(
            **{name: getattr(answer, name) for name in answer.__struct_fields__ if name != "state"},
            state="blocked",
        )

    bench.server.handlers["lease"] = waiting
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert {*bench.server.names()} <= {"hello", "wait", "lease", "release"}


async def test_a_stop_takes_no_new_claim_and_finishes_what_is_in_hand(bench: Bench) -> None:
    bench.hold(Step.FIRST_BYTE_OUT)
    first = await bench.server.add("assign_role", **bench.role())
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.members[1])
    await bench.at(Step.FIRST_BYTE_OUT)
    assert await bench.end() == 0
    assert list(bench.server.completed) == [first]
    assert bench.server.completed[first].outcome is Outcome.SUCCEEDED
    assert len(bench.server.of("claim")) == 1
    assert bench.server.names()[-1] == "release"


async def test_a_stop_ends_the_long_poll_at_once(bench: Bench) -> None:
    await bench.server.until("wait")
    assert await asyncio.wait_for(bench.end(), 5) == 0


async def test_a_stop_before_the_authorization_leaves_the_claim_to_the_next_hello(bench: Bench) -> None:
    bench.hold(Step.PREFLIGHT_DONE)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.PREFLIGHT_DONE)
    assert await bench.end() == 0
    assert bench.server.names("hello", "wait", "lease", "allowance", "release") == ["claim"]
    assert bench.writes() == 0


async def test_after_an_interruption_it_says_hello_anew_with_nothing_in_hand(bench: Bench) -> None:
    cut = iter([True, False])
    usual = bench.server.wait

    async def interrupted(sent: m.Wait) -> m.Message:
        if next(cut, False):
            raise Drop
        return await usual(sent)

    bench.server.handlers["wait"] = interrupted
    await bench.time.run_at(50)
    anew = await bench.server.until("hello", 2)
    assert anew.submissions == ()
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("complete")


async def test_a_pass_takes_nothing_new_while_a_hello_is_due(bench: Bench) -> None:
    """Claims that the server may hold for nobody wait for that hello, and the hello for the passes."""

    async def away(_sent: m.Wait) -> m.Message:
        raise Drop

    bench.hold(Step.COMPLETE_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.add("ban_member", targetUserId=bench.simulator.seed.members[1])
    await bench.at(Step.COMPLETE_ANSWERED)
    with structlog.testing.capture_logs() as lines:
        bench.server.handlers["wait"] = away
        await bench.time.run_at(20)
        await eventually(lambda: any(line["event"] == "server" for line in lines), within=10)
    del bench.server.handlers["wait"]
    bench.release(Step.COMPLETE_ANSWERED)
    await bench.server.until("complete", 2)
    names = bench.server.names()
    anew = names.index("hello", names.index("hello") + 1)
    assert names[:anew].count("claim") == 1


async def test_an_unknown_key_is_one_sentence_and_the_end(bench: Bench) -> None:
    await bench.server.until("wait")
    await bench.end()

    async def unknown(_sent: m.Hello) -> m.Message:
        raise Refusal(401, "worker_key", "The worker key is not known.")

    bench.server.handlers["hello"] = unknown
    bench.start()
    assert bench.running is not None
    with pytest.raises(Refused, match=r"The worker key is not known\."):
        await asyncio.wait_for(bench.running, 15)


async def test_a_pass_that_a_switch_ended_says_hello_which_returns_its_claim_and_lease(bench: Bench) -> None:
    blinked = iter([True])

    async def switched_off(_sent: m.Message) -> m.Message:
        raise Refusal(423, "fleet_switch")

    async def authorize(sent: m.Authorize) -> m.Message:
        if next(blinked, False):
            bench.server.handlers["release"] = switched_off
            raise Refusal(423, "fleet_switch")
        bench.server.handlers.pop("release", None)
        return await usual(sent)

    usual = bench.server.authorize
    bench.server.handlers["authorize"] = authorize
    await bench.server.add("assign_role", **bench.role())
    anew = await bench.server.until("hello", 2)
    assert anew.submissions == ()


async def test_a_disabled_account_waits_and_its_reports_still_go_out(bench: Bench) -> None:
    async def away(_sent: m.Complete) -> m.Message:
        raise Drop

    async def disabled(_sent: m.Hello) -> m.Message:
        raise Refusal(423, "account_disabled")

    bench.server.handlers["complete"] = away
    operation = await bench.server.add("assign_role", **bench.role())
    await bench.server.until("complete")
    await bench.end()
    del bench.server.handlers["complete"]
    bench.server.handlers["hello"] = disabled
    bench.start()
    await eventually(lambda: operation in bench.server.completed, within=15)
    assert len(bench.server.of("lease")) == 1


async def test_a_second_collector_on_the_same_folder_is_told_who_holds_it(bench: Bench) -> None:
    await bench.server.until("hello")
    with pytest.raises(Unavailable, match="is in use by the process"):
        await serve(bench.config(), nobody_to_ask, asyncio.Event())


async def test_a_corrupt_journal_stops_the_start_with_one_sentence(bench: Bench) -> None:
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    await bench.end()
    journal = bench.folder / "journal"
    first, second, *rest = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join([first, second[:-5] + b"?????", *rest]))
    with pytest.raises(Invalid, match=r"The journal .* is damaged at byte"):
        await serve(bench.config(), nobody_to_ask, asyncio.Event())
    with contextlib.closing(StateFolder.open(bench.folder)):
        pass


async def test_a_torn_journal_goes_on_under_another_id_and_says_so(bench: Bench) -> None:
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    await bench.end()
    journal = bench.folder / "journal"
    journal.write_bytes(journal.read_bytes()[:-3])
    bench.start()
    await bench.server.until("hello", 2)
    before, after = bench.server.of("hello")
    assert not after.is_journal_intact
    assert after.journal_id != before.journal_id
    assert after.worker_id == before.worker_id


async def test_the_session_outlives_the_process(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.end()
    arrivals = len(bench.simulator.arrivals)
    bench.start()
    await bench.server.until("hello", 2)
    fresh = [(arrival.method, arrival.path) for arrival in bench.simulator.arrivals[arrivals:]]
    assert fresh == [("GET", "/auth/user")], "no sign-in: the cookie was kept, and proved"


async def test_without_credentials_the_start_says_what_is_missing(bench: Bench, tmp_path: Path) -> None:
    config = CollectorConfig(
        server_url=bench.server.url,
        state_folder=tmp_path / "another",
        contact="ops@club.example",
        accounts=(AccountConfig(fresh_id(), "key", Credentials("", "")),),
        vrchat_url=bench.simulator.url,
    )
    with pytest.raises(Invalid, match="no user name and password were given"):
        await serve(config, nobody_to_ask, asyncio.Event())


# --- the client


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "not one of this protocol"),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 6\r\n\r\n<html>", "status 502"),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "status 302"),
        (b'HTTP/1.1 500 x\r\nContent-Length: 14\r\n\r\n{"status": 500}'[:-1], "status 500"),
        (b'HTTP/1.1 404 x\r\nContent-Length: 15\r\n\r\n{"status": 403}', "status 404"),
        (b"", "did not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "did not answer"),
    ],
)
async def test_only_the_servers_own_words_count_as_an_answer(reply: bytes, why: str) -> None:
    async def serve_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(reply)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve_once, "127.0.0.1", 0)
    server = Server(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", "key", fresh_id())
    try:
        with pytest.raises(Unreachable) as unreachable:
            await server.call(m.Wait(worker_id=fresh_id(), vrchat_user_id="usr_1"), m.WaitAnswer)
        assert why in unreachable.value.sentence
    finally:
        await server.close()
        listener.close()


async def test_a_proxy_in_the_environment_is_not_used(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.server.until("hello")
    await bench.end()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    bench.start()
    assert await bench.server.until("hello", 2)


@pytest.mark.parametrize("name", ["session-key", "vrchat-user"])
async def test_a_damaged_file_of_the_account_stops_the_start_with_one_sentence(
    bench: Bench, name: str
) -> None:
    await bench.server.until("hello")
    await bench.end()
    (damaged,) = bench.folder.glob(f"*/{name}")
    damaged.write_bytes(b"\xff not what was here")
    with pytest.raises(Invalid, match=r"is damaged\."):
        await serve(bench.config(), nobody_to_ask, asyncio.Event())


async def test_it_asks_for_no_more_connections_than_it_can_begin_with(bench: Bench) -> None:
    await bench.server.until("wait")
    assert bench.server.of("wait")[0].room == MOST_PASSES
    bench.hold(Step.CLAIM_ANSWERED)
    await bench.server.add("assign_role", **bench.role())
    await bench.at(Step.CLAIM_ANSWERED)
    await eventually(lambda: bench.server.of("wait")[-1].room == MOST_PASSES - 1)
    bench.release(Step.CLAIM_ANSWERED)
