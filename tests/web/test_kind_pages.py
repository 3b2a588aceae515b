"""Every kind on the pages: chosen where it has a form, and shown, asked about and reviewed whatever it is about."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

from tests.web.conftest import ROLE, Site, Visitor, World, user

from lastcall.db.ids import encode_id, new_id
from lastcall.operations.kinds import KINDS
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.web.compose.fields import FIELDS, fields_for

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"
POST = {"title": "Tonight <1>", "text": "At nine.", "visibility": "group", "sendNotification": False}
POST_ID = "not_00000000-0000-4000-8000-000000000001"
SHOWN: dict[str, tuple[dict[str, Any], str, str]] = {
    "approve_request": ({"targetUserId": user(1)}, "Let in", user(1)),
    "reject_request": ({"targetUserId": user(2)}, "Turn down", user(2)),
    "cancel_member_invite": ({"targetUserId": user(3)}, "Take back the invitation of", user(3)),
    "remove_member": ({"targetUserId": user(4)}, "Remove", user(4)),
    "unban_member": ({"targetUserId": user(5)}, "Unban", user(5)),
    "remove_role": ({"targetUserId": user(6), "roleId": ROLE}, "Take a role from", user(6)),
    "publish_post": (POST, "Publish “Tonight <1>”", ""),
    "edit_post": (POST | {"postId": POST_ID}, "Edit “Tonight <1>”", POST_ID),
    "delete_post": ({"postId": POST_ID}, "Delete the post", POST_ID),
}
"""What is queued, and the title and the id that pages show for it."""


async def test_every_kind_is_shown_and_can_be_asked_about(world: World, site: Site, visit: Visit) -> None:
    queued = {}
    for kind, (payload, _title, _target) in SHOWN.items():
        made = await enqueue(
            world.db,
            world.actors["owner"],
            world.club_id,
            encode_id(new_id()),
            [{"kind": kind, **payload}],
            Immediate(),
        )
        queued[kind] = made.operation_ids[0]
    visitor = visit("owner")
    page = unescape((await visitor.get(f"{CLUB}/scheduled")).text)
    for kind, (_payload, title, target) in SHOWN.items():
        assert title in page
        assert target in page
        asked = await visitor.get(
            f"{CLUB}/scheduled/{encode_id(queued[kind])}/cancel", params={"revision": 1}
        )
        assert title in unescape(asked.text)
        assert target in asked.text
    assert "None" not in page


async def test_no_kind_is_without_its_form(world: World, site: Site, visit: Visit) -> None:
    visitor = visit("owner")
    choice = (await visitor.get(f"{CLUB}/new")).text
    for kind in KINDS.values():
        assert f"{CLUB}/new/{kind.name}" in choice
        form = await visitor.get(f"{CLUB}/new/{kind.name}")
        assert form.status_code == 200
        named = set(re.findall(r' name="(\w+)"', form.text))
        assert {one.name for one in fields_for(kind)} <= named, kind.name
        assert set(kind.payload.__struct_fields__) <= set(FIELDS) | {"creation_revision"}, kind.name


async def test_a_review_says_what_it_queues_and_warns_of_what_hurts(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    removal = await visitor.post(
        f"{CLUB}/new/remove_member/review", {"people": user(4), "when": "now", "zone": "UTC"}
    )
    assert "Queue 1 removal" in removal.text
    assert "primary danger" in removal.text
    approvals = await visitor.post(
        f"{CLUB}/new/approve_request/review",
        {"people": f"{user(1)}\n{user(2)}", "when": "now", "zone": "UTC"},
    )
    assert "Queue 2 approvals" in approvals.text
    assert "primary danger" not in approvals.text
