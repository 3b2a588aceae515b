"""Settings, staff, roles, visibility, the log and the guide, as their readers use them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

from tests.web.conftest import Visitor, World

from lastcall.clubs.life import archive_club
from lastcall.clubs.queries import roles_of
from lastcall.clubs.service import create_club
from lastcall.clubs.staff import assign_role
from lastcall.db.ids import encode_id
from lastcall.people.service import block_person

CLUB = "/c/night-shift"
SEEN = re.compile(r'name="seen" value="([^"]*)"')


def seen_on(page: str) -> str:
    found = SEEN.search(page)
    assert found is not None
    return found[1].replace("&#43;", "+")


def fields(**changed: str) -> dict[str, str]:
    return {
        "name": "Night Shift",
        "slug": "night-shift",
        "zone": "Europe/Berlin",
        "retention_days": "90",
    } | changed


async def test_settings_are_saved_under_the_new_address(visit: Callable[..., Visitor], world: World) -> None:
    owner = visit("owner")
    seen = seen_on((await owner.get(f"{CLUB}/settings")).text)
    saved = await owner.post(f"{CLUB}/settings", fields(name="Late Shift", slug="late-shift", seen=seen))
    assert (saved.status_code, saved.headers["location"]) == (303, "/c/late-shift/settings?saved=1")
    assert "Late Shift" in (await owner.get("/c/late-shift/settings")).text
    assert (await owner.get(f"{CLUB}/settings")).status_code == 404


async def test_of_two_editors_the_second_sees_the_fresh_settings_and_keeps_what_they_typed(
    visit: Callable[..., Visitor], world: World
) -> None:
    first, second = visit("owner"), visit("owner")
    seen = seen_on((await first.get(f"{CLUB}/settings")).text)
    await first.post(f"{CLUB}/settings", fields(name="First", seen=seen))
    refused = await second.post(f"{CLUB}/settings", fields(name="Second", seen=seen))
    assert refused.status_code == 409
    assert "It is now called “First”" in refused.text
    assert 'value="Second"' in refused.text
    again = await second.post(f"{CLUB}/settings", fields(name="Second", seen=seen_on(refused.text)))
    assert again.status_code == 303
    assert "<h1>Settings</h1><p>What Second is called" in (await second.get(f"{CLUB}/settings")).text


async def test_a_wrong_setting_is_named_beside_its_field(visit: Callable[..., Visitor], world: World) -> None:
    owner = visit("owner")
    seen = seen_on((await owner.get(f"{CLUB}/settings")).text)
    for wrong in ({"zone": "Mars/Olympus"}, {"slug": "Night Shift"}, {"name": ""}, {"retention_days": "x"}):
        refused = await owner.post(f"{CLUB}/settings", fields(seen=seen, **wrong))
        assert refused.status_code == 422, wrong
        assert f'id="{next(iter(wrong))}-wrong"' in refused.text
    taken = await owner.post(f"{CLUB}/settings", fields(seen=seen, slug="elsewhere"))
    assert taken.status_code == 409
    assert 'id="slug-wrong"' in taken.text
    torn = await owner.post(f"{CLUB}/settings", fields(seen="yesterday"))
    assert torn.status_code == 422
    assert "This form is not complete." in torn.text


async def test_an_archived_club_is_deleted_by_its_typed_name_and_by_nothing_else(
    visit: Callable[..., Visitor], world: World
) -> None:
    owner = visit("owner")
    await archive_club(world.db, world.actors["owner"], world.club_id)
    assert (await owner.post(f"{CLUB}/settings/delete", {"confirm_slug": "Night Shift"})).status_code == 422
    gone = await owner.post(f"{CLUB}/settings/delete", {"confirm_slug": "night-shift"})
    assert (gone.status_code, gone.headers["location"]) == (303, "/")
    assert (await owner.get(f"{CLUB}/settings")).status_code == 404
    assert "Night Shift" not in (await owner.get("/")).text


async def test_a_dangerous_step_asks_an_old_session_to_confirm_and_comes_back(
    visit: Callable[..., Visitor], world: World
) -> None:
    await world.db.pool.execute("update sessions set authenticated_at = now() - interval '1 hour'")
    owner = visit("owner")
    for step in ("archive", "transfer", "delete"):
        asked = await owner.get(f"{CLUB}/settings/{step}")
        assert asked.status_code == 303
        assert asked.headers["location"] == f"/sign-in/confirm?next=%2Fc%2Fnight-shift%2Fsettings%2F{step}"
    assert (await owner.get(f"{CLUB}/settings/pause")).status_code == 200


async def test_two_people_editing_one_role_do_not_overwrite_each_other(
    visit: Callable[..., Visitor], world: World
) -> None:
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[0]
    address = f"{CLUB}/roles/{encode_id(role.id)}"
    first, second = visit("owner"), visit("owner")
    seen = seen_on((await first.get(address)).text)
    won = await first.post(address, {"name": "Door", "permission": "manage_bans", "seen": seen})
    assert won.status_code == 303
    lost = await second.post(address, {"name": "Window", "permission": "view_members", "seen": seen})
    assert lost.status_code == 409
    assert "It is now “Door” and allows: Ban and unban." in lost.text
    assert 'value="view_members" checked' in lost.text
    assert (await second.post(address, {"name": "Window", "seen": seen_on(lost.text)})).status_code == 303


async def test_deleting_the_last_role_that_could_see_something_says_what_fell_to_the_owner(
    visit: Callable[..., Visitor], world: World
) -> None:
    owner = visit("owner")
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[0]
    chosen = {"audience": "roles", "role": encode_id(role.id), "seen": ""}
    assert (await owner.post(f"{CLUB}/visibility/group_size", chosen)).status_code == 303
    address = f"{CLUB}/roles/{encode_id(role.id)}/delete"
    deleted = await owner.post(address, {"seen": seen_on((await owner.get(address)).text)})
    assert "Only you see now: Group size." in (await owner.get(deleted.headers["location"])).text


async def test_staff_who_manage_staff_are_offered_only_what_they_may_hand_on(
    visit: Callable[..., Visitor], world: World
) -> None:
    async with world.db.read() as tx:
        admin, moderator, _ = await roles_of(tx, world.club_id)
    staff, stranger = world.actors["staff"], world.actors["stranger"]
    await assign_role(world.db, world.actors["owner"], world.club_id, admin.id, staff.person_id)
    await assign_role(world.db, world.actors["owner"], world.club_id, moderator.id, stranger.person_id)
    page = (await visit("staff").get(f"{CLUB}/staff")).text
    assert "Stranger" in page
    assert "<select" not in page.split("</table>")[0], "no role may be handed on yet"
    refused = await visit("staff").post(
        f"{CLUB}/staff/{encode_id(stranger.person_id)}/roles", {"role_id": encode_id(admin.id)}
    )
    assert refused.status_code == 403
    assert "Settings" not in (await visit("staff").get(f"{CLUB}/staff")).text, (
        "the owner's page is not offered"
    )


async def test_the_log_filters_and_exports_what_it_shows(visit: Callable[..., Visitor], world: World) -> None:
    owner = visit("owner")
    await owner.post(f"{CLUB}/roles/new", {"name": "=Greeter"})
    page = (await owner.get(f"{CLUB}/log?family=staff")).text
    assert "Made the role <b>=Greeter</b>" in page
    assert "Made the club" not in page
    assert (await owner.get(f"{CLUB}/log?since=tomorrow")).status_code == 422
    exported = await owner.get(f"{CLUB}/log/csv?family=staff")
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    assert rows[0]["action"] == "staff.role_created"
    assert rows[0]["entity"] == "'=Greeter", "a spreadsheet takes no name for a formula"
    assert exported.headers["content-disposition"] == 'attachment; filename="night-shift-log.csv"'


async def test_an_operator_makes_a_club_for_somebody_new(visit: Callable[..., Visitor], world: World) -> None:
    operator = visit("operator")
    made = {"name": "Basement", "slug": "basement", "zone": "UTC", "owner_email": "new@example.org"}
    assert (await operator.post("/operator/clubs", made)).status_code == 303
    assert "Basement" in (await operator.get("/operator/clubs?search=base")).text
    taken = await operator.post("/operator/clubs", made | {"name": "Another"})
    assert taken.status_code == 409
    assert 'id="slug-wrong"' in taken.text
    malformed = await operator.post("/operator/clubs", made | {"slug": "attic", "owner_email": "new"})
    assert 'id="owner_email-wrong"' in malformed.text
    await block_person(world.db, None, world.actors["stranger"].person_id)
    blocked = await operator.post(
        "/operator/clubs", made | {"slug": "attic", "owner_email": "stranger@example.org"}
    )
    assert blocked.status_code == 404
    assert "The owner is unknown or blocked." in blocked.text
    assert 'value="attic"' in blocked.text, "what was typed is still there"
    assert (await operator.get("/c/basement/staff")).status_code == 404


async def test_the_guide_counts_what_is_done(visit: Callable[..., Visitor], world: World) -> None:
    owner = visit("owner")
    assert "3 of 6 done" in (await owner.get(f"{CLUB}/start")).text  # roles, staff, the group
    await owner.post(f"{CLUB}/visibility/group_size", {"audience": "owner", "seen": ""})
    await world.queue("ban_member", [1])
    assert "5 of 6 done" in (await owner.get(f"{CLUB}/start")).text
    new = (await create_club(world.db, None, "Basement", "basement", "UTC", "owner@example.org")).club_id
    assert "0 of 6 done" in (await owner.get("/c/basement/start")).text
    async with world.db.read() as tx:
        role = (await roles_of(tx, new))[0]
    await assign_role(world.db, world.actors["owner"], new, role.id, world.actors["staff"].person_id)
    assert "1 of 6 done" in (await owner.get("/c/basement/start")).text, "staff say nothing of the roles"
    await owner.post("/c/basement/roles/new", {"name": "Greeter"})
    assert "2 of 6 done" in (await owner.get("/c/basement/start")).text


async def test_whoever_decides_join_requests_is_led_to_them(
    visit: Callable[..., Visitor], world: World
) -> None:
    there = f'href="{CLUB}/join-requests"'
    staff = visit("staff")
    assert there not in (await staff.get(f"{CLUB}/scheduled")).text
    async with world.db.read() as tx:
        moderator = next(role for role in await roles_of(tx, world.club_id) if role.name == "Moderator")
    person = world.actors["staff"].person_id
    await assign_role(world.db, world.actors["owner"], world.club_id, moderator.id, person)
    assert there in (await staff.get(f"{CLUB}/scheduled")).text
    assert "Nobody waits." in (await staff.get(f"{CLUB}/join-requests")).text
    for page in ("staff", "staff/invites"):
        assert there in (await visit("owner").get(f"{CLUB}/{page}")).text
    # A request that is not there is unknown before anything is said about the decision.
    unknown = await visit("owner").post(f"{CLUB}/join-requests/{'0' * 26}", {"decision": "x"})
    assert unknown.status_code == 404


async def test_a_zero_character_in_any_field_is_named_and_reaches_no_statement(
    visit: Callable[..., Visitor], world: World
) -> None:
    owner, operator = visit("owner"), visit("operator")
    asked = [
        await owner.get(f"{CLUB}/log?family=a%00b"),
        await operator.get("/operator/people?search=%00"),
        await owner.get("/?%00=1"),
        await owner.post(f"{CLUB}/settings", fields(name="Night\0Shift", seen="x")),
    ]
    assert [(one.status_code, "zero character" in one.text) for one in asked] == [(422, True)] * 4
