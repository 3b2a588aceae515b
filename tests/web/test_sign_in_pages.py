"""Signing in over HTTP: what it tells a guesser, what a scanner can use up, whose forms count, where it leads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.web.conftest import Site, Visitor, World

import lastcall.web.routes.sign_in as sign_in_routes
from lastcall.people.service import block_person, set_operator
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.testing.locks import wait_until_blocked

Visit = Callable[..., Visitor]
OWNER = "owner@example.org"
CODE = re.compile(r'id="code">([^<]+)<')


async def asked(visitor: Visitor, email: str) -> Any:
    return await visitor.post("/sign-in", {"email": email}, token=await visitor.token("/sign-in"))


async def test_no_account_is_told_from_a_missing_one_and_all_work_is_after_the_answer(
    world: World, site: Site, visit: Visit
) -> None:
    await block_person(world.db, None, world.actors["stranger"].person_id)
    seen = set()
    async with world.db.transaction() as tx:
        # Whoever is looked up now waits; an answer that needed that would wait with it.
        await tx.raw.execute("lock table people in access exclusive mode")
        for email in (OWNER, "stranger@example.org", "nobody@example.org"):
            visitor = visit()
            answer = await asyncio.wait_for(asked(visitor, email), 5)
            told = {name: value for name, value in answer.headers.items() if name != "date"}
            after = await visitor.get("/sign-in/code")
            seen.add((answer.status_code, str(sorted(told.items())), answer.text, visitor_free(after.text)))
            assert set(visitor.client.cookies.keys()) == {"lastcall-form"}
        await wait_until_blocked(world.db, "people", by=tx.raw.get_server_pid())
        assert site.mail.received == []
    assert len(seen) == 1
    await site.mail.mail_to(OWNER)
    assert [mail.recipients for mail in site.mail.received] == [[OWNER]]


def visitor_free(text: str) -> str:
    """A page without what is another for each browser and moment."""
    return re.sub(r'(name="form_token" value|data-now)="[^"]*"', "", text)


async def test_a_scanner_that_opens_and_presses_everything_uses_nothing_up(
    world: World, site: Site, visit: Visit
) -> None:
    here, scanner = visit(), visit()
    await asked(here, OWNER)
    mail = await site.mail.mail_to(OWNER)
    for _ in range(5):
        assert (await scanner.get(mail.path)).status_code == 200
        assert (await scanner.client.head(mail.path)).status_code == 200
        assert (await scanner.client.post(mail.path)).status_code == 403
        pressed = await scanner.post(mail.path, token=await scanner.token("/sign-in"))
        assert (pressed.status_code, "lastcall" in pressed.cookies) == (403, False)
    code = CODE.search((await scanner.get(mail.path)).text)
    assert code is not None
    assert code[1] == mail.code
    typed = await scanner.post("/sign-in/code", {"code": code[1]}, token=await scanner.token("/sign-in"))
    assert typed.status_code == 401
    signed_in = await here.post(mail.path, token=await here.token(mail.path))
    assert signed_in.status_code == 303
    assert (await here.get("/me")).status_code == 200


ELSEWHERE = (
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example",
    "javascript:alert(1)",
    "/\t/evil.example",
    "/x\r\nSet-Cookie: a=b",
    "evil",
    "/ünïcode",
    "",
)


async def test_no_next_leads_to_another_host_and_without_the_judgement_it_would(
    world: World, site: Site, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = visit("owner")
    token = await visitor.token("/me")
    for elsewhere in ELSEWHERE:
        answers = [
            await visitor.get("/sign-in/confirm", params={"next": elsewhere}),
            await visitor.post("/sign-in/confirm/mail", {"next": elsewhere}, token=token),
        ]
        newcomer = visit()
        await newcomer.get("/sign-in", params={"next": elsewhere})
        link = f"/sign-in/{await make_sign_in_link(world.db, OWNER)}"
        answers.append(await newcomer.post(link, token=await newcomer.token(link)))
        where = [answer.headers["location"] for answer in answers]
        assert where == ["/", "/sign-in/confirm?next=%2F&sent=yes", "/"], elsewhere
    good = await visitor.get("/sign-in/confirm", params={"next": "/c/night-shift/new?x=1"})
    assert good.headers["location"] == "/c/night-shift/new?x=1"
    monkeypatch.setattr(sign_in_routes, "own_path", lambda text: text)
    forged = await visitor.get("/sign-in/confirm", params={"next": "//evil.example"})
    assert forged.headers["location"] == "//evil.example"


async def test_a_form_counts_for_the_browser_it_was_made_for_and_no_other(
    world: World, site: Site, visit: Visit
) -> None:
    owner, attacker, nobody = visit("owner"), visit("stranger"), visit()
    own = await owner.token("/me")
    for forged in ("", "0" * 64, await attacker.token("/me"), await nobody.token("/sign-in")):
        for path in ("/me/name", "/me/sessions", "/me/tokens/new", "/sign-in/confirm", "/sign-out"):
            answer = await owner.post(path, {"display_name": "Eve"}, token=forged)
            assert answer.status_code == 403, (path, forged)
    assert (await owner.post("/me/name", {"display_name": "Ada"}, token=own)).status_code == 303


async def test_what_a_browser_had_before_a_sign_in_is_worth_nothing_after_it(
    world: World, site: Site, visit: Visit
) -> None:
    attacker = visit("stranger")
    planted = world.sessions["stranger"]
    victim = visit(session=planted)
    victim.client.cookies.set("lastcall-form", "a key that the attacker knows")
    link = f"/sign-in/{await make_sign_in_link(world.db, OWNER)}"
    before = await victim.token(link)
    answer = await victim.post(link, token=before)
    new = answer.cookies["lastcall"]
    assert new != planted
    assert (await attacker.get("/me")).status_code == 401
    signed_in = visit(session=new)
    assert "Owner" in (await signed_in.get("/me")).text
    assert (await signed_in.post("/me/name", {"display_name": "Eve"}, token=before)).status_code == 403


async def test_a_block_counts_from_the_next_request_on(world: World, site: Site, visit: Visit) -> None:
    owner = visit("owner")
    assert (await owner.get("/me")).status_code == 200
    await block_person(world.db, None, world.actors["owner"].person_id)
    assert (await owner.get("/me")).status_code == 401
    operator = visit("operator")
    assert (await operator.get("/operator/people")).status_code == 200
    await set_operator(world.db, None, world.actors["operator"].person_id, is_operator=False)
    assert (await operator.get("/operator/people")).status_code == 404


async def age(world: World) -> None:
    """Every session was confirmed eleven minutes ago."""
    await world.db.pool.execute(
        "update sessions set authenticated_at = authenticated_at - $1::interval", timedelta(minutes=11)
    )


async def test_whoever_must_confirm_does_so_by_mail_and_comes_back_to_the_form(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    token = await owner.token("/me")
    await age(world)
    for answer in (await owner.get("/me/tokens/new"), await owner.post("/me/tokens/new", {}, token=token)):
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            "/sign-in/confirm?next=%2Fme%2Ftokens%2Fnew",
        )
    swapped = await owner.get("/me/tokens/new", headers={"hx-request": "true"})
    assert swapped.headers["hx-redirect"] == "/sign-in/confirm?next=%2Fme%2Ftokens%2Fnew"
    sent = await owner.post("/sign-in/confirm/mail", {"next": "/me/tokens/new"}, token=token)
    assert "Code" in (await owner.get(sent.headers["location"])).text
    code = (await site.mail.mail_to(OWNER)).code
    wrong = await owner.post("/sign-in/confirm", {"next": "/me/tokens/new", "code": "00000000"}, token=token)
    assert (wrong.status_code, "wrong or no longer works" in wrong.text) == (422, True)
    right = await owner.post("/sign-in/confirm", {"next": "/me/tokens/new", "code": code}, token=token)
    assert (right.status_code, right.headers["location"]) == (303, "/me/tokens/new")
    fields = {"name": "<b>Bot</b>", "scope": "read", "days": "30"}
    made = await owner.post("/me/tokens/new", fields, token=token)
    secret = re.search(r'value="(lc_[^"]+)"', made.text)
    assert secret is not None
    account = (await owner.get("/me")).text
    assert secret[1] not in account
    assert "&lt;b&gt;Bot&lt;/b&gt;" in account
    assert "API token" in (await site.mail.mail_to(OWNER, number=2)).subject


async def test_the_account_page_ends_a_session_and_refuses_bad_input_in_place(
    world: World, site: Site, visit: Visit
) -> None:
    other, _ = await redeem_sign_in_link(world.db, await make_sign_in_link(world.db, OWNER))
    owner = visit("owner")
    page = (await owner.get("/me")).text
    paths = re.findall(r'action="(/me/sessions/[^"]+)"', page)
    assert len(paths) == 1
    token = await owner.token("/me")
    assert (await owner.post(paths[0], token=token)).status_code == 303
    assert (await visit(session=other).get("/me")).status_code == 401
    for path, fields, words in (
        ("/me/name", {"display_name": " "}, "empty"),
        ("/me/email", {"email": "nobody"}, "not an e-mail address"),
        ("/me/tokens/new", {"name": "Bot", "days": "7"}, "good for nothing"),
        ("/me/tokens/new", {"name": "Bot", "scope": "read", "days": "99999999999"}, "at most 365 days"),
        ("/me/email/confirm", {"code": "ⅷ" * 300}, "wrong or no longer works"),
    ):
        answer = await owner.post(path, fields, token=token)
        assert (answer.status_code, words in answer.text) == (422, True), path


async def test_an_operator_finds_a_person_blocks_them_and_reads_it_in_the_audit(
    world: World, site: Site, visit: Visit
) -> None:
    operator = visit("operator")
    token = await operator.token("/operator/people")
    added = await operator.post("/operator/people", {"email": "new@example.org"}, token=token)
    assert "new@example.org" in (await operator.get(added.headers["location"])).text
    again = await operator.post("/operator/people", {"email": "NEW@example.org"}, token=token)
    assert (again.status_code, "exists already" in again.text) == (409, True)
    nameless = {"email": "third@example.org", "display_name": "Third\u202e"}
    refused = await operator.post("/operator/people", nameless, token=token)
    assert refused.status_code == 422
    assert 'id="name-wrong"' in refused.text
    assert 'id="email-wrong"' not in refused.text
    found = (await operator.get("/operator/people", params={"search": "stranger"})).text
    (path,) = re.findall(r'href="(/operator/people/\w{26})"', found)
    question = await operator.get(f"{path}/block")
    assert "Block Stranger?" in question.text
    assert (await operator.post(f"{path}/block", token=token)).status_code == 303
    assert "Blocked" in (await operator.get(path)).text
    audit = (await operator.get("/operator/audit", params={"about": path.rsplit("/", 1)[1]})).text
    assert "Was blocked" in audit
    await age(world)
    assert (
        (await operator.post(f"{path}/unblock", token=token))
        .headers["location"]
        .startswith("/sign-in/confirm?next=")
    )
