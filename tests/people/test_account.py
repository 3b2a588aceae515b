"""What people do to their account by mail, with the real mailer over real SMTP, and what they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from lastcall.db.database import Database
from lastcall.errors import Conflict, Invalid, NotAllowed, NotSignedIn
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.people.account import (
    confirm_email_change,
    confirm_step_up,
    rename,
    request_email_change,
    request_sign_in,
    request_step_up,
)
from lastcall.people.actor import Actor
from lastcall.people.preferences import Topic, declare_topic, preferences_of, set_preferences, wants_mail
from lastcall.people.queries import own_account
from lastcall.people.recovery import move_person, recover_person
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person, block_person
from lastcall.people.sessions import RECENT, Browser, actor_of_session
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_code, redeem_sign_in_link
from lastcall.people.tokens import browser_hash
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.mail import MailSink

PUBLIC_URL = "https://lastcall.club.example"


@pytest.fixture
def database_url(shared_url: str) -> str:
    return shared_url


@pytest.fixture
async def sink() -> AsyncIterator[MailSink]:
    async with MailSink() as sink:
        yield sink


@pytest.fixture
async def mailer(database: Database, sink: MailSink) -> AsyncIterator[Mailer]:
    server = mail_server(sink.url, "Lastcall <lastcall@club.example>")
    async with Mailer(database, server, PUBLIC_URL).running() as mailer:
        yield mailer


def address(name: str = "sam") -> str:
    return f"{name}-{uuid4().hex[:8]}@example.org"


def browser(key: str = "") -> Browser:
    return Browser(key=key or uuid4().hex, source=uuid4().hex)


async def signed_in(database: Database, email: str) -> tuple[str, Actor, Browser]:
    await add_person(database, email, "Sam")
    session, actor = await redeem_sign_in_link(database, await make_sign_in_link(database, email))
    return session, actor, browser(session)


async def found(database: Database, session: str) -> Actor:
    actor = await actor_of_session(database, session)
    assert actor is not None
    return actor


async def test_only_an_address_that_may_sign_in_gets_a_mail_and_its_link_and_code_are_one(
    database: Database, mailer: Mailer, sink: MailSink
) -> None:
    known, blocked, unknown, here = address(), address("blocked"), address("unknown"), browser()
    await add_person(database, known, "Sam")
    await block_person(database, None, await add_person(database, blocked, "Robin"))
    for email in (unknown, blocked, known.upper()):
        await request_sign_in(database, mailer, email, here)
    mail = await sink.mail_to(known)
    assert mail.link.startswith(f"{PUBLIC_URL}/sign-in/")
    assert (sink.to(unknown), sink.to(blocked)) == ([], [])
    links = await database.pool.fetchval(
        "select count(*) from sign_in_links where browser_hash = $1", browser_hash(here.key)
    )
    assert links == 1
    session, actor = await redeem_sign_in_code(database, mail.code, here)
    async with database.read() as tx:
        assert (await own_account(tx, actor)).is_verified
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, mail.path.rsplit("/", 1)[1], here)
    with pytest.raises(Invalid):
        await request_sign_in(database, mailer, "nobody", here)
    assert await actor_of_session(database, session)


async def test_whoever_may_join_is_written_to_without_an_account(
    database: Database, mailer: Mailer, sink: MailSink
) -> None:
    email, here = address(), browser()
    await request_sign_in(database, mailer, email, here, may_join=True)
    mail = await sink.mail_to(email)
    _, actor = await redeem_sign_in_link(database, mail.path.rsplit("/", 1)[1], here)
    assert actor.display_name == email.partition("@")[0]


async def test_a_session_is_recent_for_ten_minutes_and_again_after_a_code(
    database: Database, mailer: Mailer, sink: MailSink, test_clock: TestClock
) -> None:
    email = address()
    session, _, here = await signed_in(database, email)
    (await found(database, session)).require_recent()
    await test_clock.advance(RECENT)
    actor = await found(database, session)
    with pytest.raises(NotAllowed) as refused:
        actor.require_recent()
    assert refused.value.code == "step_up_needed"
    await request_step_up(database, mailer, actor, here)
    code = (await sink.mail_to(email)).code
    _, other, _ = await signed_in(database, address("other"))
    for wrong_actor, wrong_browser in ((other, here), (actor, browser())):
        with pytest.raises(NotSignedIn):
            await confirm_step_up(database, wrong_actor, code, wrong_browser)
    await confirm_step_up(database, actor, code, here)
    (await found(database, session)).require_recent()
    with pytest.raises(NotSignedIn):
        await confirm_step_up(database, actor, code, here)
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_code(database, code, here)


async def test_a_new_address_counts_once_its_code_is_typed_and_the_old_one_is_told(
    database: Database, mailer: Mailer, sink: MailSink
) -> None:
    old, new, taken = address(), address("new"), address("taken")
    session, actor, here = await signed_in(database, old)
    open_link = await make_sign_in_link(database, old)
    await add_person(database, taken, "Robin")
    await request_email_change(database, mailer, actor, taken, here)
    await request_email_change(database, mailer, actor, new, here)
    code = (await sink.mail_to(new)).code
    assert sink.to(taken) == []
    assert await confirm_email_change(database, mailer, actor, code, here) == new
    told = await sink.mail_to(old)
    assert "mail address" in told.subject
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, open_link)
    stale = Actor(actor.person_id, "Sam", is_operator=False, session_id=actor.session_id)
    for refused in (stale, Actor(actor.person_id, "Sam", is_operator=False, scopes=frozenset(Scope))):
        with pytest.raises(NotAllowed):
            await request_email_change(database, mailer, refused, address(), here)
        with pytest.raises(NotAllowed):
            await confirm_email_change(database, mailer, refused, code, here)
    assert await found(database, session)


async def test_of_two_who_take_one_address_at_once_one_gets_it_and_the_other_hears_nothing_of_it(
    database: Database, mailer: Mailer, sink: MailSink
) -> None:
    new = address("both")
    _, first, first_browser = await signed_in(database, address())
    _, second, second_browser = await signed_in(database, address())
    codes = []
    for number, (actor, here) in enumerate(((first, first_browser), (second, second_browser)), 1):
        await request_email_change(database, mailer, actor, new, here)
        codes.append((await sink.mail_to(new, number=number)).code)
    async with database.transaction() as tx:
        await tx.raw.execute("update people set email = $1 where id = $2", new, first.person_id)
        loser = asyncio.create_task(confirm_email_change(database, mailer, second, codes[1], second_browser))
        await wait_until_blocked(database, "people", by=tx.raw.get_server_pid())
    with pytest.raises(NotSignedIn) as refused:
        await loser
    assert refused.value.code == "code_not_usable"


async def test_recovering_ends_every_way_in_but_the_one_link_it_prints(
    database: Database, mailer: Mailer, sink: MailSink
) -> None:
    email = address()
    session, actor, _ = await signed_in(database, email)
    open_link = await make_sign_in_link(database, email)
    await database.pool.execute(
        "insert into passkeys (id, person_id, credential_id, public_key, sign_count, name, transports, is_backed_up)"
        " values (gen_random_uuid(), $1, $2, 'k', 0, 'Key', '{}', false)",
        actor.person_id,
        uuid4().bytes,
    )
    recovered = await recover_person(database, mailer, email.upper())
    assert (recovered.sessions, recovered.tokens, recovered.passkeys, recovered.identities) == (1, 0, 1, 0)
    assert await actor_of_session(database, session) is None
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(database, open_link)
    _, again = await redeem_sign_in_link(database, recovered.link)
    assert again.person_id == actor.person_id
    assert "recovered" in (await sink.mail_to(email)).subject
    await block_person(database, None, actor.person_id)
    with pytest.raises(Conflict) as refused:
        await recover_person(database, mailer, email)
    assert refused.value.code == "person_blocked", "the link would let nobody in"


async def test_the_command_line_moves_a_person_to_a_free_address_as_yet_unconfirmed(
    database: Database, mailer: Mailer, sink: MailSink
) -> None:
    old, new = address(), address("new")
    _, actor, _ = await signed_in(database, old)
    with pytest.raises(Conflict):
        await add_person(database, new, "Robin")
        await move_person(database, mailer, old, new)
    free = address("free")
    await move_person(database, mailer, old, free)
    async with database.read() as tx:
        account = await own_account(tx, actor)
    assert (account.email, account.is_verified) == (free, False)
    assert free.partition("@")[0] in (await sink.mail_to(old)).text


async def test_a_person_chooses_mails_by_topic_and_others_keep_theirs(database: Database) -> None:
    topic = Topic("test_topic", "a test is written")
    declare_topic(topic)
    _, actor, _ = await signed_in(database, address())
    _, other, _ = await signed_in(database, address())
    await set_preferences(database, actor, [])
    async with database.read() as tx:
        assert not await wants_mail(tx, actor.person_id, topic)
        assert await wants_mail(tx, other.person_id, topic)
        mine = {one.topic.key: one.is_on for one in await preferences_of(tx, actor)}
    assert mine["test_topic"] is False
    await set_preferences(database, actor, ["test_topic", "no such topic"])
    async with database.read() as tx:
        assert await wants_mail(tx, actor.person_id, topic)


async def test_a_name_that_cannot_be_seen_is_refused_with_its_field(database: Database) -> None:
    session, actor, _ = await signed_in(database, address())
    with pytest.raises(Invalid) as refused:
        await rename(database, actor, "Sam\u202egro.elpmaxe")
    assert refused.value.field == "display_name"
    await rename(database, actor, "  Samira ")
    assert (await found(database, session)).display_name == "Samira"
