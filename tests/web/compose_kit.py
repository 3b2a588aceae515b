"""New actions as a browser without scripts fills them in, reviews and confirms them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

from tests.web.conftest import Visitor, World, user

from lastcall.db.ids import encode_id
from lastcall.events.fields import EventFields
from lastcall.events.services.write import create_event, link_world
from lastcall.events.times import Timed

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
AREA = re.compile(r'<textarea name="(\w+)" hidden>\n?([^<]*)</textarea>')

WORLD = "wrld_00000000-0000-4000-8000-000000000001"
GROUP = "grp_1"
INSTANCE = f"12345~group({GROUP})~region(eu)"
POST = "not_00000000-0000-4000-8000-000000000001"
TEXT = 'At nine.\nBring <friends> & "time".'
PEOPLE = {"people": f"Fox {user(1)}"}


async def reviewed(
    visitor: Visitor, kind: str, fields: dict[str, str], status: int = 200, token: str | None = None
) -> str:
    form = {"when": "now", "zone": "Europe/Berlin", **fields}
    answer = await visitor.post(f"{CLUB}/new/{kind}/review", form, token=token)
    assert answer.status_code == status, answer.text
    return answer.text


def carried(text: str) -> dict[str, str]:
    """What the review's confirmation sends again."""
    return {name: unescape(value) for name, value in (*HIDDEN.findall(text), *AREA.findall(text))}


async def stored(world: World) -> list[dict[str, Any]]:
    rows = await world.db.pool.fetch(
        "select payload::text from operations order by created_at, request_id, position"
    )
    return [json.loads(row[0]) for row in rows]


async def timed_event(world: World, starts_at: datetime, world_id: str = "") -> str:
    made = await create_event(
        world.db,
        world.actors["owner"],
        world.club_id,
        EventFields("Opening", Timed(starts_at), "Europe/Berlin"),
    )
    if world_id:
        await link_world(world.db, world.actors["owner"], world.club_id, made.id, world_id)
    return encode_id(made.id)


def soon(**later: int) -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(**later)
