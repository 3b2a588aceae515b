"""The transport sends a write once, whatever comes back; the stock SDK against the same simulator does
not."""

from __future__ import annotations

import ast
import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import vrchatapi
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from lastcall import vrchat
from lastcall.clock import SYSTEM_CLOCK
from lastcall.errors import Invalid
from lastcall.protocol.outcomes import Code
from lastcall.protocol.steps import Step
from lastcall.vrchat import errors
from lastcall.vrchat.cookies import Cookies
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_USERNAME, Simulator, faults
from lastcall.vrchat.simulator.faults import Fault
from lastcall.vrchat.transport import (
    BODY_CAP,
    Answer,
    NoAnswer,
    NotSent,
    SendResult,
    Transport,
    user_agent_for,
)
from lastcall.wire import Reply, _Wire

SHORT = timedelta(seconds=1)


def role_path(simulator: Simulator) -> str:
    seed = simulator.seed
    return f"/groups/{seed.group_id}/members/{seed.members[0]}/roles/{seed.role_ids[0]}"


async def send(simulator: Simulator, transport: Transport, **options: object) -> SendResult:
    return await transport.send_once("PUT", role_path(simulator), **options)


FAULTS: dict[str, tuple[Fault, type, bool]] = {
    "dropped before it was applied": (faults.drop(applied=False), NoAnswer, False),
    "dropped after it was applied": (faults.drop(applied=True), NoAnswer, True),
    "reset after it was applied": (faults.reset(applied=True), NoAnswer, True),
    "garbage": (faults.garbage(applied=True), Answer, True),
    "no HTTP": (faults.noise(applied=True), NoAnswer, True),
    "a proxy's page": (faults.proxy_page(502, applied=True), Answer, True),
    "a dripping body": (faults.drip(0.05), NoAnswer, True),
    "429": (faults.answer(429, retry_after="1"), Answer, False),
    "503": (faults.answer(503, retry_after="1"), Answer, False),
    "401": (faults.answer(401), Answer, False),
    "301": (faults.redirect(301, "/api/1/auth/user"), Answer, False),
    "307": (faults.redirect(307, "/api/1/auth/user"), Answer, False),
    "308 applied": (faults.redirect(308, "/api/1/auth/user", applied=True), Answer, True),
    "slower than the total time": (faults.slow(1.5), NoAnswer, False),
}


@pytest.mark.clause("WRK-15", "WRK-14")
@pytest.mark.parametrize(("fault", "kind", "is_applied"), FAULTS.values(), ids=FAULTS.keys())
async def test_a_write_goes_out_once_on_one_connection_whatever_comes_back(
    simulator: Simulator, transport: Transport, fault: Fault, kind: type, is_applied: bool
) -> None:
    simulator.arm(fault, method="PUT", times=5)
    started = SYSTEM_CLOCK.boot()
    result = await send(simulator, transport)
    assert isinstance(result, kind)
    assert SYSTEM_CLOCK.boot() - started < 2.5
    assert [arrival.method for arrival in simulator.arrivals] == ["PUT"]
    assert simulator.connections == 1
    if fault.delay == 0:
        assert len(simulator.ledger.entries) == int(is_applied)


@pytest.mark.clause("WRK-15")
async def test_a_stale_kept_alive_connection_is_never_used_for_a_write(
    simulator: Simulator, transport: Transport
) -> None:
    await transport.exchange("GET", "/auth/user")
    simulator.arm(faults.reset(applied=True, only_reused=True), method="PUT", times=5)
    result = await send(simulator, transport)
    assert isinstance(result, Answer)
    assert result.status == 200
    assert [arrival.method for arrival in simulator.arrivals] == ["GET", "PUT"]
    assert len({arrival.connection for arrival in simulator.arrivals}) == 2


@asynccontextmanager
async def recording_proxy() -> AsyncIterator[tuple[str, list[bytes]]]:
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1024))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


@pytest.mark.clause("WRK-15")
async def test_a_proxy_in_the_environment_is_not_asked(
    simulator: Simulator, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recording_proxy() as (address, heard):
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, address)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        result = await send(simulator, transport)
        assert isinstance(result, Answer)
        assert result.status == 200
        assert heard == []


async def test_a_refused_connection_is_known_not_to_have_sent_anything(simulator: Simulator) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{reserved.getsockname()[1]}/api/1"
        closed = Transport(address, user_agent_for("ops@example.org"), Cookies(), SYSTEM_CLOCK)
        result = await send(simulator, closed)
        await closed.close()
    assert isinstance(result, NotSent)
    assert result.code == Code.NETWORK


def self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "pair.pem").write_bytes(encoded + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair.pem")
    return context


async def test_nothing_is_sent_to_a_server_with_a_certificate_nobody_vouches_for(
    simulator: Simulator, tmp_path: Path
) -> None:
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1024))
        writer.close()

    context = self_signed(tmp_path)
    server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
    async with server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/1"
        transport = Transport(address, user_agent_for("ops@example.org"), Cookies(), SYSTEM_CLOCK)
        result = await send(simulator, transport)
        await transport.close()
    assert isinstance(result, NotSent)
    assert heard == []


async def test_a_connection_closed_at_accept_counts_as_perhaps_sent(
    simulator: Simulator, transport: Transport
) -> None:
    simulator.arm(faults.refuse())
    result = await send(simulator, transport)
    assert isinstance(result, NoAnswer)
    assert simulator.connections == 1
    assert simulator.arrivals == []


async def test_the_last_look_stops_a_write_before_its_first_byte(
    simulator: Simulator, transport: Transport
) -> None:
    steps: list[Step] = []

    async def observe(step: Step) -> None:
        steps.append(step)

    held = await send(simulator, transport, may_send=lambda: False, on_step=observe)
    assert isinstance(held, NotSent)
    assert held.code == Code.NOT_ATTEMPTED
    assert steps == []
    assert simulator.arrivals == []
    sent = await send(simulator, transport, may_send=lambda: True, on_step=observe)
    assert isinstance(sent, Answer)
    assert steps == [Step.FIRST_BYTE_OUT, Step.REPLY_READ]


async def order_at_the_last_look(simulator: Simulator, transport: Transport) -> list[str]:
    """What happens from the last look on: whether the write is handed over before anything else has a turn."""
    order: list[str] = []

    def may_send() -> bool:
        asyncio.get_running_loop().call_soon(order.append, "something else")
        return True

    async def observe(step: Step) -> None:
        order.append(step.value)

    await send(simulator, transport, may_send=may_send, on_step=observe)
    return order


async def test_nothing_comes_between_the_last_look_and_the_first_byte(
    simulator: Simulator, transport: Transport
) -> None:
    order = await order_at_the_last_look(simulator, transport)
    assert order == [Step.FIRST_BYTE_OUT.value, "something else", Step.REPLY_READ.value]


async def test_twin_one_await_after_the_last_look_lets_something_else_come_between(
    simulator: Simulator, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard is that nothing is awaited there; an exchange that gives its turn away stands in its place."""
    real = _Wire.exchange

    async def exchange(self: _Wire, *arguments: Any) -> Reply:
        await asyncio.sleep(0)
        return await real(self, *arguments)

    monkeypatch.setattr(_Wire, "exchange", exchange)
    order = await order_at_the_last_look(simulator, transport)
    assert order[:2] == ["something else", Step.FIRST_BYTE_OUT.value]


async def test_an_answer_longer_than_the_cap_is_no_answer(simulator: Simulator, transport: Transport) -> None:
    simulator.world.groups[simulator.seed.group_id].members[simulator.seed.members[0]].role_ids.append(
        "x" * BODY_CAP
    )
    result = await send(simulator, transport)
    assert isinstance(result, NoAnswer)
    assert result.code == Code.SCHEMA_DRIFT


@pytest.mark.clause("WRK-21")
async def test_nothing_bypasses_the_transports_own_checks(transport: Transport) -> None:
    for path in (
        "https://elsewhere.example/x",
        "//elsewhere.example/x",
        "/groups/../auth",
        "/a?b=c",
        "/a b",
        "",
    ):
        with pytest.raises(ValueError, match="not a path"):
            await transport.send_once("PUT", path)
    with pytest.raises(ValueError, match="writes"):
        await transport.send_once("GET", "/auth/user")
    with pytest.raises(ValueError, match="send_once"):
        await transport.exchange("POST", "/groups/grp_1/bans", json={})


@pytest.mark.clause("WRK-21")
def test_only_the_transport_speaks_to_the_network() -> None:
    network = {
        "httpx",
        "httpx2",
        "h11",
        "socket",
        "ssl",
        "urllib3",
        "requests",
        "http.client",
        "urllib.request",
        "lastcall.wire",
    }
    room = Path(vrchat.__file__).parent
    speakers = set()
    for path in room.rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        if names & network and "simulator" not in path.parts:
            speakers.add(path.name)
    assert speakers == {"transport.py"}


@pytest.mark.parametrize("agent", ["", "Lastcall", "Lastcall/1", "Lastcall/1 ", "python-requests/2 \n"])
def test_a_user_agent_without_application_version_and_contact_is_refused(agent: str) -> None:
    with pytest.raises(Invalid, match="User-Agent"):
        Transport("http://127.0.0.1:1/api/1", agent, Cookies(), SYSTEM_CLOCK)


def test_the_session_never_travels_in_clear_text() -> None:
    with pytest.raises(Invalid, match="https"):
        Transport("http://api.vrchat.cloud/api/1", user_agent_for("ops@example.org"), Cookies(), SYSTEM_CLOCK)


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (faults.drop(applied=False), errors.Network),
        (faults.drip(0.05), errors.Timeout),
        (faults.garbage(applied=False), errors.Transient),
        (faults.proxy_page(502, applied=False), errors.Transient),
        (faults.proxy_page(403, applied=False), errors.Transient),
        (faults.proxy_page(429, applied=False), errors.RateLimit),
        (faults.answer(401), errors.Authentication),
        (faults.answer(403), errors.ProviderPermissions),
        (faults.answer(404), errors.NotVisible),
        (faults.answer(408), errors.Transient),
        (faults.answer(418), errors.Refused),
        (faults.answer(429, retry_after="7"), errors.RateLimit),
        (faults.answer(500), errors.Transient),
        (faults.redirect(302, "/api/1/auth/user"), errors.Transient),
    ],
)
async def test_a_read_that_fails_raises_its_fault(
    simulator: Simulator, transport: Transport, fault: Fault, raised: type[errors.ProviderFault]
) -> None:
    simulator.arm(fault, method="GET")
    with pytest.raises(errors.ProviderFault) as caught:
        await transport.get("/auth/user", dict)
    assert type(caught.value) is raised
    if fault.retry_after is not None:
        assert caught.value.retry_after == float(fault.retry_after)


# ------------------------------------------------------------------------------------------------ the twins


def plain_request(simulator: Simulator, transport: Transport, method: str, path: str) -> dict[str, Any]:
    headers = {"User-Agent": user_agent_for("ops@example.org"), "Cookie": transport.cookies.header() or ""}
    return {"method": method, "url": simulator.url + path, "headers": headers}


async def test_twin_a_kept_alive_connection_leaves_the_outcome_of_a_write_unknown(
    simulator: Simulator, transport: Transport
) -> None:
    """The guard is the fresh connection; a client that keeps its connections stands in its place."""
    simulator.arm(faults.reset(applied=True, only_reused=True), method="PUT", times=5)
    async with httpx2.AsyncClient(trust_env=False) as client:
        await client.request(**plain_request(simulator, transport, "GET", "/auth/user"))
        with pytest.raises(httpx2.TransportError):
            await client.request(**plain_request(simulator, transport, "PUT", role_path(simulator)))
    assert len(simulator.ledger.entries) == 1


async def test_twin_a_client_that_trusts_the_environment_hands_the_write_to_a_proxy(
    simulator: Simulator, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard is that the environment is not read; the library's default stands in its place."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with recording_proxy() as (address, heard):
        monkeypatch.setenv("HTTP_PROXY", address)
        async with httpx2.AsyncClient() as client:
            with pytest.raises(httpx2.TransportError):
                await client.request(**plain_request(simulator, transport, "PUT", role_path(simulator)))
    assert heard[0].startswith(b"PUT http://127.0.0.1")
    assert b"auth=" in heard[0]


async def test_twin_a_time_limit_for_each_read_never_ends_a_dripping_body(
    simulator: Simulator, transport: Transport
) -> None:
    """The guard is the one total time; the library's own limit, a fifth as long, stands in its place."""
    simulator.arm(faults.drip(0.05), method="PUT")
    async with httpx2.AsyncClient(trust_env=False, timeout=0.2) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SHORT.total_seconds()):
                await client.request(**plain_request(simulator, transport, "PUT", role_path(simulator)))


async def test_twin_following_a_redirect_sends_the_write_again(
    simulator: Simulator, transport: Transport
) -> None:
    """The guard is that redirects are not followed; a client that does stands in its place."""
    simulator.arm(faults.redirect(307, f"/api/1{role_path(simulator)}", applied=True), method="PUT")
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=True) as client:
        await client.request(**plain_request(simulator, transport, "PUT", role_path(simulator)))
    assert [arrival.method for arrival in simulator.arrivals] == ["PUT", "PUT"]


def _stock_sdk_assigns(simulator: Simulator, cookie: str) -> None:
    """The official SDK with its defaults, signed in by cookie, giving one role to one member."""
    configuration = vrchatapi.Configuration(host=simulator.url, username=BOT_USERNAME, password=BOT_PASSWORD)
    seed = simulator.seed
    with vrchatapi.ApiClient(configuration, cookie=cookie) as client:
        client.user_agent = user_agent_for("ops@example.org")
        groups = vrchatapi.GroupsApi(client)
        groups.add_group_member_role(seed.group_id, seed.members[0], seed.role_ids[0], _request_timeout=2)


@pytest.mark.parametrize(
    "fault",
    [faults.drop(applied=True), faults.answer(429, retry_after="0"), faults.answer(503, retry_after="0")],
    ids=["dropped", "429", "503"],
)
async def test_twin_a_client_library_with_its_own_retries_sends_several_times(
    simulator: Simulator, transport: Transport, fault: Fault
) -> None:
    """The guard is the transport's lack of retries; the stock SDK's defaults stand in its place."""
    simulator.arm(fault, method="PUT", times=10)
    cookie = transport.cookies.header()
    with pytest.raises(Exception, match=r"retries|Max|429|503|Connection|response"):
        await asyncio.to_thread(_stock_sdk_assigns, simulator, cookie)
    assert len([arrival for arrival in simulator.arrivals if arrival.method == "PUT"]) > 1
    if fault.applies:
        assert len(simulator.ledger.entries) > 1
