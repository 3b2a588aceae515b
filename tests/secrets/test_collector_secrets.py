"""What a collector knows of its VRChat account stays with it: the server's database, every log, the pages and the
figures hold nothing with which their reader could sign in as the account, or call in its name."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog
from tests.hostile.stage import Place, Stage, open_stage
from tests.kill.kill_house import free_port
from tests.secrets.forms import seen
from tests.secrets.house import SESSION_COOKIE
from tests.secrets.test_secrets import PLANTED, rows_of
from tests.web.conftest import PLAIN

from lastcall.collector.config import config_from
from lastcall.connections.accounts import rotate_key
from lastcall.db.ids import encode_id, new_id
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.settings import load
from lastcall.vrchat.simulator import BOT_TOTP_SECRET, faults
from lastcall.vrchat.totp import totp


@contextmanager
def heard(lines: list[str]) -> Iterator[None]:
    """Everything that is handed to the house's log, at its loudest, before it is made fit to be written."""

    def hear(_logger: Any, _name: str, event: Any) -> Any:
        error = event.get("exc_info")
        lines.append(f"{event}")
        if error:
            lines.append(traceback.format_exc())
        raise structlog.DropEvent

    usual = structlog.get_config()
    structlog.configure(processors=[hear], wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    try:
        yield
    finally:
        structlog.configure(**usual)


async def pages(stage: Stage, place: Place) -> dict[str, str]:
    """What operators and staff see of the account and its connection."""
    session, _ = await redeem_sign_in_link(
        stage.database, await make_sign_in_link(stage.database, "owner@club.example")
    )
    account = encode_id(place.key.account_id)
    paths = ("/operator", f"/operator/accounts/{account}", "/c/club-1/connection", "/c/club-1/members")
    found = {}
    async with httpx2.AsyncClient(
        base_url=stage.server_url,
        cookies={SESSION_COOKIE: session},
        trust_env=False,
        verify=PLAIN,
        follow_redirects=True,
    ) as client:
        for path in paths:
            answer = await client.get(path)
            assert answer.status_code == 200, path
            found[f"the page {path}"] = answer.text
    return found


async def live(stage: Stage, place: Place, metrics_port: int) -> str:
    """A collector signs in, works, meets refusals of its key and of its session; answers its figures."""
    await place.look_due()
    place.start(metrics_port=metrics_port)
    await place.rested()
    member, other, third = place.seed.members[:3]
    (done,) = await place.enqueue({"kind": "ban_member", "targetUserId": member})
    await place.comes_to(done, "succeeded")
    place.arm(faults.answer(401), method="POST", path=f"/groups/{place.seed.group_id}/bans")
    (refused,) = await place.enqueue({"kind": "ban_member", "targetUserId": other})
    await place.comes_to(refused, "rejected authentication")
    async with httpx2.AsyncClient(trust_env=False, verify=PLAIN) as client:
        figures = (await client.get(f"http://127.0.0.1:{metrics_port}/metrics")).text
    await rotate_key(stage.database, None, place.key.account_id)
    await place.enqueue({"kind": "ban_member", "targetUserId": third})
    await stage.advance(61)
    await place.settled()
    return figures


async def test_what_a_collector_knows_is_in_no_place_that_others_read(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []
    caplog.set_level(logging.INFO)  # louder than the product lets libraries be
    with heard(lines):
        async with open_stage(database_url, tmp_path) as stage:
            place = await stage.place()
            old = place.key.key
            figures = await live(stage, place, free_port())
            world = stage.simulator.world
            secrets = {
                "password": place.bot.password,
                "TOTP secret": BOT_TOTP_SECRET,
                "TOTP code": totp(BOT_TOTP_SECRET, place.bot.sign_ins[0]),
                "worker key": old,
                **{f"session {n}": cookie for n, cookie in enumerate(world.sessions)},
                **{f"second factor {n}": cookie for n, cookie in enumerate(world.second_factors)},
            }
            shown = await pages(stage, place)
            rows = await rows_of(stage.database)
        files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "session-key"]
        disk = "\n".join(path.read_bytes().decode("latin-1") for path in files)
    sinks = {
        **shown,
        **rows,
        "the logs": "\n".join(lines),
        "what libraries logged": caplog.text,
        "the figures": figures,
        "the collector's disk": disk,
    }
    assert len(secrets) == 6
    assert seen(secrets, sinks) == []

    # It would have been found: each holds what belongs there.
    assert "club-1" in sinks["the database"]
    assert place.bot.id in sinks["the database"]
    assert "lastcall_collector_requests_total" in figures
    assert "authentication" in sinks["the logs"]
    assert all("club-1" in text for text in shown.values())
    assert seen({"it": place.bot.id}, sinks)


def test_settings_and_configuration_say_no_secret_when_they_are_shown(tmp_path: Path) -> None:
    """As a trace or a debugger would show them."""
    secrets = {name: f"planted-{name}-{PLANTED}" for name in ("key", "password", "totp", "mail")}
    plain = {
        "LASTCALL_HOME": str(tmp_path),
        "LASTCALL_VRCHAT_CONTACT": "ops@club.example",
        "LASTCALL_ACCOUNT": encode_id(new_id()),
        "LASTCALL_WORKER_KEY": secrets["key"],
        "LASTCALL_VRCHAT_USERNAME": "bot",
        "LASTCALL_VRCHAT_PASSWORD": secrets["password"],
        "LASTCALL_VRCHAT_TOTP_SECRET": secrets["totp"],
        "LASTCALL_ACCOUNT_DESK_ID": encode_id(new_id()),
        "LASTCALL_ACCOUNT_DESK_WORKER_KEY": secrets["key"],
        "LASTCALL_ACCOUNT_DESK_USERNAME": "desk",
        "LASTCALL_ACCOUNT_DESK_PASSWORD": secrets["password"],
        "LASTCALL_ACCOUNT_DESK_TOTP_SECRET": secrets["totp"],
        "LASTCALL_MAIL_URL": f"smtp://porter:{secrets['mail']}@mail.example",
    }
    settings = load(plain)
    config = config_from(settings)
    assert [account.name for account in config.accounts] == ["account", "desk"]
    assert seen(secrets, {"settings": repr(settings), "configuration": repr(config)}) == []
    held = [*config.accounts, *settings.accounts]
    assert all(account.worker_key == secrets["key"] for account in held), "they are there"
