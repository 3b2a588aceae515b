"""An invitation's page for each who may open it, without scripts; and what its address gives away: nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.web.conftest import Site, Visitor, World

from lastcall.access.acceptance import accept_invite
from lastcall.access.invites import InviteKind, NewInvite, create_invite, revoke_invite
from lastcall.access.limits import INVITE_LOOKUPS
from lastcall.api.intake import Intake
from lastcall.clubs.queries import roles_of
from lastcall.db.base import Base
from lastcall.db.ids import encode_id, new_id
from lastcall.decisions.retention.controls import archive
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.people.tokens import new_token, token_hash

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"


async def invite(world: World, **more: Any) -> NewInvite:
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[0]
    return await create_invite(world.db, world.actors["owner"], world.club_id, [role.id], **more)


async def test_the_page_says_to_each_visitor_what_they_can_do(world: World, site: Site, visit: Visit) -> None:
    made = await invite(world, note="We open at nine.\nBring a torch.")
    path = f"/invites/{made.token}"
    signed_out = (await visit().get(path)).text
    assert "Join the staff of Night Shift?" in signed_out
    assert "Your mail address" in signed_out
    assert "Bring a torch." in signed_out
    for name, words in {
        "owner": "You made this invitation yourself",
        "stranger": "Join the staff</button>",
        "staff": "Join the staff</button>",
    }.items():
        assert words in (await visit(name).get(path)).text, name
    waiting = await invite(world, approves=False)
    assert "Ask to join" in (await visit("stranger").get(f"/invites/{waiting.token}")).text
    bound = await invite(world, email="somebody@else.example")
    page = (await visit("stranger").get(f"/invites/{bound.token}")).text
    assert "for another mail address" in page
    assert "somebody@else.example" not in page
    agents = await create_invite(world.db, world.actors["owner"], world.club_id, (), kind=InviteKind.AGENT)
    for visitor in (visit(), visit("stranger")):
        assert "for a program" in (await visitor.get(f"/invites/{agents.token}")).text
    await accept_invite(world.db, world.actors["stranger"], made.token)
    again = await invite(world)
    assert "all of these roles already" in (await visit("stranger").get(f"/invites/{again.token}")).text
    await world.db.pool.execute(
        "update clubs set owner_id = $1 where id = $2", world.actors["operator"].person_id, world.club_id
    )
    assert "You own this club" in (await visit("operator").get(f"/invites/{again.token}")).text


async def test_accepting_leads_to_what_became_of_it_and_back_again(
    world: World, site: Site, visit: Visit
) -> None:
    path = f"/invites/{(await invite(world)).token}"
    stranger = visit("stranger")
    for _ in range(2):
        answer = await stranger.post(path)
        assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert "You are on the staff of Night Shift" in (await stranger.get(path)).text
    assert (await stranger.get(f"{CLUB}/scheduled")).status_code == 200

    waits = f"/invites/{(await invite(world, approves=False)).token}"
    operator = visit("operator")
    await operator.post(waits)
    assert "Your request waits" in (await operator.get(waits)).text
    request_id = await world.db.pool.fetchval(
        "select id from join_requests where status = 'pending_approval'"
    )
    asked = f"{CLUB}/join-requests/{encode_id(request_id)}"
    owner = visit("owner")
    assert "Operator" in (await owner.get(f"{CLUB}/join-requests")).text
    refused = await owner.post(asked, {"decision": "reject", "note": "x" * 1001})
    assert refused.status_code == 422
    assert "The note is too long" in refused.text
    assert (await owner.post(asked, {"decision": "reject", "note": "Not this season."})).status_code == 303
    assert (await owner.post(asked, {"decision": "approve"})).status_code == 409
    page = (await operator.get(waits)).text
    assert "Your request was turned down" in page
    assert "Not this season." in page


async def test_a_request_can_be_withdrawn_by_whoever_made_it(world: World, site: Site, visit: Visit) -> None:
    path = f"/invites/{(await invite(world, approves=False)).token}"
    stranger = visit("stranger")
    await stranger.post(path)
    assert (await visit("operator").post(f"{path}/withdraw")).status_code == 404
    assert (await stranger.post(f"{path}/withdraw")).status_code == 303
    assert "You withdrew your request" in (await stranger.get(path)).text


async def unusable(world: World) -> dict[str, str]:
    revoked, expired, used = [await invite(world) for _ in range(3)]
    await revoke_invite(world.db, world.actors["owner"], world.club_id, revoked.id)
    await world.db.pool.execute("update invites set expires_at = lastcall_now() where id = $1", expired.id)
    await accept_invite(world.db, world.actors["operator"], used.token)
    return {
        "wrong": new_token(),
        "short": "short-one",
        "strange": "%00%F0%9F%92%A5",
        "revoked": revoked.token,
        "expired": expired.token,
        "used": used.token,
    }


def same(text: str, token: str) -> str:
    """The page without what differs from one request to the next."""
    return re.sub(r'value="[0-9a-f]{64}"|data-now="[^"]*"', "", text.replace(token, ""))


async def test_every_address_that_cannot_be_used_gets_the_same_answer(
    world: World, site: Site, visit: Visit
) -> None:
    pages: dict[str | None, set[str]] = {None: set(), "stranger": set()}
    for name, token in (await unusable(world)).items():
        for who, seen in pages.items():
            opened = await visit(who).get(f"/invites/{token}")
            assert opened.status_code == 404, name
            seen.add(same(opened.text, token))
        refused = await visit("stranger").post(f"/invites/{token}")
        assert refused.status_code == 404, name
        pages["stranger"].add(same(refused.text, token))
        asked = await visit().post(f"/invites/{token}/sign-in", {"email": "new@example.org"})
        assert asked.status_code == 404, name
    assert [len(seen) for seen in pages.values()] == [1, 1]
    assert not await world.db.pool.fetchval(
        "select exists (select from people where email = 'new@example.org')"
    )


async def test_guessing_is_limited_for_each_source_and_each_person(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit()
    for _ in range(INVITE_LOOKUPS.count):
        assert (await visitor.get(f"/invites/{new_token()}")).status_code == 404
    good = f"/invites/{(await invite(world)).token}"
    refused = await visitor.get(good)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert (await visit("stranger").get(good)).status_code == 200, "who is signed in counts alone"


async def test_twin_without_the_limit_guessing_goes_on(
    world: World, site: Site, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr("lastcall.web.routes.invites.take", nothing)
    visitor = visit()
    for _ in range(INVITE_LOOKUPS.count + 1):
        answer = await visitor.get(f"/invites/{new_token()}")
    assert answer.status_code == 404


async def test_the_token_is_in_no_log_no_referrer_no_other_page_and_no_table(
    world: World, site: Site, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = site.server.config.app.asgi_handler  # type: ignore[union-attr]
    assert isinstance(handler, Intake)
    monkeypatch.setattr(handler, "_logs_requests", True)
    owner = visit("owner")
    with capture_logs() as logs:
        async with world.db.read() as tx:
            role = (await roles_of(tx, world.club_id))[0]
        made = await owner.post(
            f"{CLUB}/staff/invites/new", {"role": encode_id(role.id), "email": "guest@example.org"}
        )
        found = re.search(r"/invites/([A-Za-z0-9_-]{43})", made.text)
        assert found is not None
        token = found[1]
        assert f'value="{site.url}/invites/{token}"' in made.text
        assert made.headers["cache-control"] == "no-store"
        mail = await site.mail.mail_to("guest@example.org")
        assert mail.path == f"/invites/{token}"
        guest = visit()
        opened = await guest.get(f"/invites/{token}")
        await guest.post(f"/invites/{token}/sign-in", {"email": "guest@example.org"})
        await visit("stranger").post(f"/invites/{token}")
        listed = await owner.get(f"{CLUB}/staff/invites")
    assert opened.headers["referrer-policy"] == "no-referrer"
    assert not re.search(r'(?:href|src)="https?://(?!127\.0\.0\.1)', opened.text)
    requests = [entry for entry in logs if entry["event"] == "request"]
    assert any("/invites/" in entry["path"] for entry in requests), "the requests were logged"
    assert token not in repr(logs)
    assert token not in listed.text
    for table in Base.metadata.sorted_tables:
        for secret in (token, token[:20]):
            seen = await world.db.pool.fetchval(
                f"select exists (select from {table.name} t where position($1 in t::text) > 0)", secret
            )
            assert not seen, table.name
    assert await world.db.pool.fetchval(
        "select exists (select from invites where token_hash = $1)", token_hash(token)
    )


async def test_somebody_new_comes_in_by_mail_and_only_when_they_use_it(
    world: World, site: Site, visit: Visit
) -> None:
    path = f"/invites/{(await invite(world, email='new@example.org')).token}"
    guest = visit()
    answer = await guest.post(f"{path}/sign-in", {"email": "new@example.org"}, token=await guest.token(path))
    assert answer.headers["location"] == "/sign-in/code"
    mail = await site.mail.mail_to("new@example.org")
    who = "select exists (select from people where lower(email) = 'new@example.org')"
    assert not await world.db.pool.fetchval(who)
    signed_in = await guest.post(mail.path, token=await guest.token(mail.path))
    assert signed_in.headers["location"] == path
    assert await world.db.pool.fetchval(who)
    assert (await guest.post(path)).headers["location"] == path
    told = await site.mail.mail_to("owner@example.org")
    assert told.subject == "Your invitation was accepted"
    assert "new" in told.text


async def test_a_forged_address_of_an_invitation_sends_no_mail(
    world: World, site: Site, visit: Visit
) -> None:
    """Else anybody could have accounts made here."""
    good = f"/invites/{(await invite(world)).token}"
    guest = visit()
    token = await guest.token(good)
    forged = f"/invites/{new_token()}/sign-in"
    assert (await guest.post(forged, {"email": "new@example.org"}, token=token)).status_code == 404
    assert await world.db.pool.fetchval("select count(*) from sign_in_links where email is not null") == 0


async def test_a_manager_invites_only_with_roles_they_may_hand_on(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    nothing = await owner.post(f"{CLUB}/staff/invites/new", {})
    assert nothing.status_code == 422
    assert nothing.text.count("An invitation gives at least one role.") == 2, (
        "above the form and at its field"
    )
    malformed = await owner.post(f"{CLUB}/staff/invites/new", {"role": "x", "email": "x"})
    assert malformed.status_code in {404, 422}
    gone = await owner.post(
        f"{CLUB}/staff/invites/new", {"role": encode_id(new_id()), "note": "Welcome", "approves": "no"}
    )
    assert gone.status_code == 404
    assert gone.text.count("There is no such role in this club.") == 2
    assert "Welcome" in gone.text, "a role that somebody deleted meanwhile costs nothing that was typed"
    sly = await visit("staff").post(f"{CLUB}/staff/invites/new", {"role": "x"})
    assert sly.status_code == 403
    assert "Invite somebody" not in sly.text, "whoever may not invite is not shown the form"


async def test_a_persons_data_is_downloaded_and_erased_from_their_page(
    world: World, site: Site, visit: Visit
) -> None:
    stranger = visit("stranger")
    page = await stranger.get("/me/privacy")
    assert "90 days" in page.text
    file = await stranger.post("/me/privacy/export")
    assert file.headers["content-disposition"] == 'attachment; filename="lastcall-my-data.jsonl"'
    rows = [json.loads(line) for line in file.text.splitlines()]
    assert {"profile", "session", "club you own"} <= {row["what"] for row in rows}
    owns = await stranger.post("/me/privacy/erase", {"email": "stranger@example.org"})
    assert owns.status_code == 409
    assert "Elsewhere" in owns.text
    staff = visit("staff")
    wrong = await staff.post("/me/privacy/erase", {"email": "somebody@example.org"})
    assert wrong.status_code == 422
    erased = await staff.post("/me/privacy/erase", {"email": " STAFF@example.org "})
    assert "Your account is erased" in erased.text
    assert (await visit("staff").get("/me")).status_code == 401
    club = await visit("owner").post(f"{CLUB}/export")
    assert {"clubs", "staff_roles"} <= {json.loads(line)["table"] for line in club.text.splitlines()}


async def test_whoever_used_an_invitation_sees_what_became_of_it_after_its_end_and_nobody_else_does(
    world: World, site: Site, visit: Visit
) -> None:
    made = await invite(world, approves=False, max_uses=2)
    path = f"/invites/{made.token}"
    stranger = visit("stranger")
    await stranger.post(path)
    for end in ("revoked_at", "expires_at"):
        await world.db.pool.execute(f"update invites set {end} = lastcall_now() where id = $1", made.id)
        assert "Your request waits" in (await stranger.get(path)).text
        for other in (visit(), visit("operator")):
            answer = await other.get(path)
            assert answer.status_code == 404
            assert "This invitation cannot be used" in answer.text
            assert "Night Shift" not in answer.text, "a stranger does not even learn of the club"


async def test_an_invitation_for_several_is_used_once_by_each_and_then_is_used_up(
    world: World, site: Site, visit: Visit
) -> None:
    made = await invite(world, max_uses=2)
    path = f"/invites/{made.token}"
    for who in ("stranger", "stranger", "operator"):
        assert (await visit(who).post(path)).status_code == 303, who
    assert (await visit("staff").get(path)).status_code == 404
    owner = visit("owner")
    assert "used 2 of 2 times" in (await owner.get(f"{CLUB}/staff/invites")).text
    uses = (await owner.get(f"{CLUB}/staff/invites/{encode_id(made.id)}")).text
    assert "Stranger" in uses
    assert "Operator" in uses
    assert "2 of 2 times" in uses


async def test_the_page_never_leads_somebody_who_left_into_a_club_they_cannot_open(
    world: World, site: Site, visit: Visit
) -> None:
    path = f"/invites/{(await invite(world)).token}"
    stranger = visit("stranger")
    await stranger.post(path)
    await world.db.pool.execute(
        "delete from staff_assignments where person_id = $1", world.actors["stranger"].person_id
    )
    for page in (path, "/requests"):
        text = (await stranger.get(page)).text
        assert f"{CLUB}/scheduled" not in text, page
    assert "You are not on the staff of Night Shift" in (await stranger.get(path)).text
    assert "not on its staff any more" in (await stranger.get("/requests")).text


async def test_whoever_is_signed_in_under_another_address_is_told_which_and_comes_back(
    world: World, site: Site, visit: Visit
) -> None:
    bound = f"/invites/{(await invite(world, email='somebody@else.example')).token}"
    stranger = visit("stranger")
    page = await stranger.get(bound)
    assert "stranger@example.org" in page.text
    assert bound in page.headers["set-cookie"], "the way back, for after the next sign-in"


async def test_ones_requests_stand_on_one_page_with_their_end_and_what_was_said(
    world: World, site: Site, visit: Visit
) -> None:
    stranger = visit("stranger")
    assert "You asked nowhere" in (await stranger.get("/requests")).text
    asked = await accept_invite(
        world.db, world.actors["stranger"], (await invite(world, approves=False)).token
    )
    page = (await stranger.get("/requests")).text
    assert "Waiting" in page
    assert "Somebody of the club decides" in page
    await archive(
        world.db, world.actors["owner"], world.club_id, JOIN_REQUEST, asked.request_id, seen_version=0
    )
    assert same((await stranger.get("/requests")).text, "") == same(page, ""), "archived is not told"
    club = {"club": encode_id(world.club_id)}
    withdraw = f"/requests/{encode_id(asked.request_id)}/withdraw"
    assert (await visit("operator").post(withdraw, club)).status_code == 404
    assert (await stranger.post(withdraw, club)).headers["location"] == "/requests"
    assert "Withdrawn" in (await stranger.get("/requests")).text
    again = await accept_invite(
        world.db, world.actors["stranger"], (await invite(world, approves=False)).token
    )
    await visit("owner").post(
        f"{CLUB}/join-requests/{encode_id(again.request_id)}", {"decision": "reject", "note": "Next year."}
    )
    page = (await stranger.get("/requests")).text
    assert "Turned down" in page
    assert "Next year." in page
    told = await site.mail.mail_to("stranger@example.org")
    assert (told.subject, told.path) == ("Your request was decided", "/requests")
    assert "Next year." not in told.text
