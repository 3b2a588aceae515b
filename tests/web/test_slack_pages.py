"""Slack over real HTTP: what is refused for its signature, and the way from a command to being linked."""

from __future__ import annotations

import html
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from tests.web.conftest import PLAIN, Site, Visitor, World

from lastcall.cli.server import bind, running_server
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.deliveries import channels
from lastcall.settings import Settings
from lastcall.testing.mail import MailSink
from lastcall.testing.slack import SlackDouble


@pytest.fixture
async def double() -> AsyncIterator[SlackDouble]:
    async with SlackDouble() as double:
        yield double


@pytest.fixture
async def site(
    database: Database, double: SlackDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    """The server with an app for Slack, in place of the other tests' one."""
    monkeypatch.setattr(channels, "_channels", {})
    taken = bind("127.0.0.1", 0)
    async with MailSink() as sink:
        settings = Settings(
            home=tmp_path,
            port=taken.getsockname()[1],
            public_url=f"http://127.0.0.1:{taken.getsockname()[1]}",
            mail_url=sink.url,
            mail_from="Lastcall <lastcall@club.example>",
            **double.settings,
        )
        async with running_server(settings, database, taken=taken) as server:

            async def nothing() -> None:
                return None

            yield Site(settings, database, server, settings.public_url, sink, nothing, nothing)


@pytest.fixture
async def slack(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=site.url, trust_env=False, timeout=20, verify=PLAIN) as client:
        yield client


async def sent(slack: httpx2.AsyncClient, path: str, call: tuple[bytes, dict[str, str]]) -> httpx2.Response:
    return await slack.post(path, content=call[0], headers=call[1])


async def connected(world: World, double: SlackDouble, owner: Visitor) -> None:
    """The owner connects workspace T1, the way a browser does."""
    role = await world.db.pool.fetchval(
        "select id from staff_roles where club_id = $1 and state = 'active' order by id limit 1",
        world.club_id,
    )
    token = await owner.token("/c/night-shift/slack")
    leaving = await owner.post("/c/night-shift/slack", {"role": encode_id(role)}, token=token)
    found = re.search(r'href="([^"]+authorize[^"]+)"', leaving.text)
    assert found is not None
    address = urlsplit(html.unescape(found[1]))
    assert f"{address.scheme}://{address.netloc}" == double.url
    query = parse_qs(address.query)
    assert query["scope"] == ["commands,chat:write"]
    back = await owner.get(
        "/slack/installed", params={"code": double.code("T1", "Night people"), "state": query["state"][0]}
    )
    assert (back.status_code, back.headers["location"]) == (303, "/c/night-shift/slack")


def link_in(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said["response_type"] == "ephemeral", "nobody else in the channel sees it"
    found = re.search(r"/slack/connect/\S+", said["text"])
    assert found is not None, said
    return found[0]


async def test_what_is_not_signed_within_five_minutes_is_refused_and_changes_nothing(
    world: World, double: SlackDouble, visit: Callable[..., Visitor], slack: httpx2.AsyncClient
) -> None:
    await connected(world, double, visit("owner"))
    body, right = double.command("T1", "U1")
    stranger = SlackDouble()
    now = int(time.time())
    wrong = [
        (body, {name: value for name, value in right.items() if name != "x-slack-signature"}),
        (body, {name: value for name, value in right.items() if name != "x-slack-request-timestamp"}),
        (body, right | {"x-slack-signature": "v0=" + "0" * 64}),
        (body, right | {"x-slack-request-timestamp": str(now + 1)}),
        (body, right | {"x-slack-request-timestamp": "now"}),
        (body, right | {"x-slack-request-timestamp": "9" * 5000}),
        (body + b"&x=1", right),
        (b"\xff\xfe", right),
        double.command("T1", "U1", at=now - 301),
        double.command("T1", "U1", at=now + 330),
        stranger.command("T1", "U1"),
    ]
    for call in wrong:
        answer = await sent(slack, "/slack/commands", call)
        assert answer.status_code in {401, 400}, (call, answer.text)
        assert "connect/" not in answer.text
    for call in (
        stranger.event("T1", "app_uninstalled"),
        double.event("T1", "app_uninstalled", at=now - 400),
    ):
        assert (await sent(slack, "/slack/events", call)).status_code == 401
    assert await world.db.pool.fetchval("select count(*) from slack_links") == 0
    assert await world.db.pool.fetchval("select count(*) from slack_installations") == 1
    link_in(await sent(slack, "/slack/commands", (body, right)))


async def test_a_replayed_command_is_told_no_link(
    world: World, double: SlackDouble, visit: Callable[..., Visitor], slack: httpx2.AsyncClient
) -> None:
    await connected(world, double, visit("owner"))
    call = double.command("T1", "U1")
    link_in(await sent(slack, "/slack/commands", call))
    again = await sent(slack, "/slack/commands", call)
    assert (again.status_code, "connect/" in again.text) == (200, False)
    assert "answered already" in again.json()["text"]
    assert await world.db.pool.fetchval("select count(*) from slack_links") == 1


async def test_from_a_command_to_a_request_that_waits(
    world: World, double: SlackDouble, visit: Callable[..., Visitor], slack: httpx2.AsyncClient
) -> None:
    await connected(world, double, visit("owner"))
    link = link_in(await sent(slack, "/slack/commands", double.command("T1", "U1", "robin")))
    signed_out = await visit().get(link)
    assert signed_out.status_code == 200
    assert "Night people" in signed_out.text
    assert "Your mail address" in signed_out.text
    guest = visit("stranger")
    page = (await guest.get(link)).text
    assert "robin" in page
    assert "Ask to join" in page
    for _ in range(2):
        asked = await guest.post(f"{link}/ask", token=await guest.token("/"))
        assert (asked.status_code, asked.headers["location"]) == (303, link)
    assert "Waiting for a decision" in (await guest.get(link)).text
    assert (await guest.post(f"{link}/confirm", token=await guest.token("/"))).status_code == 403
    waiting = await world.db.pool.fetch(
        "select j.person_id from join_requests j join invites i on (i.club_id, i.id) = (j.club_id, j.invite_id)"
        " where i.source = 'slack'"
    )
    assert [row["person_id"] for row in waiting] == [world.actors["stranger"].person_id]


async def test_staff_say_that_it_is_them_and_let_it_go_again(
    world: World, double: SlackDouble, visit: Callable[..., Visitor], slack: httpx2.AsyncClient
) -> None:
    await connected(world, double, visit("owner"))
    link = link_in(await sent(slack, "/slack/commands", double.command("T1", "U1", "robin")))
    staff = visit("staff")
    assert "Yes, that is me" in (await staff.get(link)).text
    assert (await staff.post(f"{link}/confirm", token=await staff.token("/"))).status_code == 303
    assert "You are linked" in (await staff.get(link)).text
    assert (await visit("owner").get(link)).status_code == 404, "it is used up for everybody else"
    told = (await sent(slack, "/slack/commands", double.command("T1", "U1"))).json()["text"]
    assert "You are linked at" in told
    assert "connect/" not in told
    assert "Unlink my own account" in (await staff.get("/c/night-shift/slack")).text
    await staff.post("/c/night-shift/slack/unlink", token=await staff.token("/"))
    assert await world.db.pool.fetchval("select count(*) from slack_people") == 0


async def test_slacks_own_test_is_answered_and_an_app_that_was_taken_out_is_let_go(
    world: World, double: SlackDouble, visit: Callable[..., Visitor], slack: httpx2.AsyncClient
) -> None:
    asked = double.signed(b'{"type": "url_verification", "challenge": "abc"}', "application/json")
    answer = await sent(slack, "/slack/events", asked)
    assert (answer.status_code, answer.json()) == (200, {"challenge": "abc"})
    await connected(world, double, visit("owner"))
    link = link_in(await sent(slack, "/slack/commands", double.command("T1", "U1")))
    for broken in (b"x", b"[]", b'{"type": "event_callback", "event_time": 1e300}'):
        wrong = await sent(slack, "/slack/events", double.signed(broken, "application/json"))
        assert wrong.status_code == 422
    late = double.event("T1", "tokens_revoked")
    await world.db.pool.execute(
        "update slack_installations set installed_at = installed_at - interval '1 hour'"
    )
    assert (await sent(slack, "/slack/events", late)).status_code == 200
    assert await world.db.pool.fetchval("select count(*) from slack_installations") == 0
    assert (await visit("owner").get(link)).status_code == 404
    told = await sent(slack, "/slack/commands", double.command("T1", "U1"))
    assert "No club is connected" in told.json()["text"]


async def test_somebody_new_gets_an_account_by_the_link(
    site: Site, world: World, double: SlackDouble, visit: Callable[..., Visitor], slack: httpx2.AsyncClient
) -> None:
    await connected(world, double, visit("owner"))
    link = link_in(await sent(slack, "/slack/commands", double.command("T1", "U1")))
    stranger = visit()
    token = await stranger.token(link)
    answer = await stranger.post(f"{link}/sign-in", {"email": "new@example.org"}, token=token)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in/code")
    assert (await site.mail.mail_to("new@example.org")).link
