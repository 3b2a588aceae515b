"""Functions on people: their own account, and what operators do to others'."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.matrix.cases import Case, Who, row
from tests.matrix.world import PARTY, World
from tests.people.authenticator import Authenticator

from lastcall.people import (
    account,
    api_tokens,
    erasing,
    identities,
    operator_mail,
    passkeys,
    preferences,
    queries,
    service,
    sessions,
)
from lastcall.people.actor import Actor
from lastcall.people.flows import Purpose, begin_flow
from lastcall.people.identities import Callback
from lastcall.people.scopes import Scope
from lastcall.people.sessions import Way, open_session

PASSKEY = """
    insert into passkeys (id, person_id, credential_id, public_key, sign_count, name, transports, is_backed_up)
    values (gen_random_uuid(), $1, 'c', 'k', 0, 'Phone', '{}', false) returning id
"""
IDENTITY = """
    insert into identities (id, person_id, provider, issuer, subject, label)
    values (gen_random_uuid(), $1, 'discord', 'https://id.example.org', 's', 'robin') returning id
"""


def in_browser(actor: Actor) -> Actor:
    """The same person, who has just signed in: for what comes before the call that is tried."""
    return replace(actor, is_recent=True, scopes=None)


async def end_session(w: World, tx: Any, actor: Any) -> object:
    _, session_id = await open_session(tx, actor.person_id, Way.LINK, w.browser())
    return await sessions.end_session_by_id(w.db, actor, session_id)


async def revoke_token(w: World, tx: Any, actor: Any) -> object:
    token_id = await tx.raw.fetchval(
        """
        insert into api_tokens (id, person_id, name, token_hash, hint, scopes, expires_at)
        values (gen_random_uuid(), $1, 'Bot', sha256('h'), 'lc_', '{read}', lastcall_now() + interval '1 day')
        returning id
        """,
        actor.person_id,
    )
    return await api_tokens.revoke_token(w.db, actor, token_id)


def create_token(w: World, _: Any, actor: Any) -> Any:
    return api_tokens.create_token(w.db, w.mailer, actor, "Bot", [Scope.READ], timedelta(days=1))


async def add_passkey(w: World, _: Any, actor: Any) -> object:
    browser = w.browser()
    options = await passkeys.begin_adding(w.db, PARTY, in_browser(actor), browser)
    answer = Authenticator().create(options)
    return await passkeys.add_passkey(w.db, w.mailer, PARTY, actor, browser, answer, "Phone")


async def confirm_by_passkey(w: World, _: Any, actor: Any) -> object:
    """With a passkey that nobody added: who may not is refused before it is looked at."""
    browser = w.browser()
    options = await passkeys.begin_confirming(w.db, PARTY, in_browser(actor), browser)
    answer = Authenticator().get(options)
    return await passkeys.confirm_by_passkey(w.db, PARTY, actor, browser, answer)


async def remove_passkey(w: World, tx: Any, actor: Any) -> object:
    return await passkeys.remove_passkey(w.db, actor, await tx.raw.fetchval(PASSKEY, actor.person_id))


async def remove_identity(w: World, tx: Any, actor: Any) -> object:
    return await identities.remove_identity(w.db, actor, await tx.raw.fetchval(IDENTITY, actor.person_id))


def to_provider(purpose: Purpose) -> Any:
    return lambda w, _, a: identities.begin_at_provider(w.db, w.providers, "discord", purpose, w.browser(), a)


def back_from_provider(purpose: Purpose) -> Any:
    """The person said no there, so that nobody has to be asked."""

    async def call(w: World, _: Any, actor: Any) -> object:
        browser = w.browser()
        asker = None if purpose is Purpose.SIGN_IN else actor or w.guest
        state = await begin_flow(w.db, purpose, browser, actor=asker, provider="discord")
        return await identities.finish_at_provider(
            w.db, w.mailer, w.providers, "discord", browser, actor, Callback(state)
        )

    return call


def owns_clubs(case: Case) -> str | None:
    owner = case.is_owner or case.name == "owner of another club"
    return "owns_clubs" if owner and not case.is_token and case.actor and case.actor.is_recent else None


def own(function: Any) -> Any:
    return lambda _, tx, a: function(tx, a)


def to_guest(function: Any, **named: Any) -> Any:
    return lambda w, _, a: function(w.db, a, w.guest.person_id, **named)


def to_self(function: Any) -> Any:
    return lambda w, _, a: function(w.db, a, w.guest.person_id if a is None else a.person_id)


ACCOUNT = [
    *(
        row(one, Who.SELF, Scope.READ, own(one))
        for one in (
            queries.own_account,
            sessions.sessions_of,
            api_tokens.tokens_of,
            passkeys.passkeys_of,
            identities.identities_of,
            preferences.preferences_of,
        )
    ),
    row(
        account.rename,
        Who.SELF,
        Scope.ACCOUNT,
        lambda w, _, a: account.rename(w.db, a, "Other"),
        is_judged_again=True,
    ),
    row(
        account.request_step_up,
        Who.SELF,
        Scope.ACCOUNT,
        lambda w, _, a: account.request_step_up(w.db, w.mailer, a, w.browser()),
        is_judged_again=True,
    ),
    row(
        account.confirm_step_up,
        Who.SELF,
        Scope.ACCOUNT,
        lambda w, _, a: account.confirm_step_up(w.db, a, "ab12cd34", w.browser()),
        answer="code_not_usable",
    ),
    row(
        account.request_email_change,
        Who.SELF,
        None,
        lambda w, _, a: account.request_email_change(w.db, w.mailer, a, "new@example.org", w.browser()),
        is_recent=True,
    ),
    row(
        account.confirm_email_change,
        Who.SELF,
        None,
        lambda w, _, a: account.confirm_email_change(w.db, w.mailer, a, "ab12cd34", w.browser()),
        is_recent=True,
        answer="code_not_usable",
    ),
    row(
        preferences.set_preferences,
        Who.SELF,
        Scope.ACCOUNT,
        lambda w, _, a: preferences.set_preferences(w.db, a, []),
        is_judged_again=True,
    ),
    row(api_tokens.create_token, Who.SELF, None, create_token, is_recent=True, is_judged_again=True),
    row(api_tokens.revoke_token, Who.SELF, Scope.ACCOUNT, revoke_token, is_judged_again=True),
    row(sessions.end_session_by_id, Who.SELF, Scope.ACCOUNT, end_session, is_judged_again=True),
    row(
        sessions.end_other_sessions,
        Who.SELF,
        Scope.ACCOUNT,
        lambda w, _, a: sessions.end_other_sessions(w.db, a),
        is_judged_again=True,
    ),
    row(
        passkeys.begin_adding,
        Who.SELF,
        None,
        lambda w, _, a: passkeys.begin_adding(w.db, PARTY, a, w.browser()),
        is_recent=True,
    ),
    row(passkeys.add_passkey, Who.SELF, Scope.ACCOUNT, add_passkey, is_judged_again=True),
    row(passkeys.remove_passkey, Who.SELF, None, remove_passkey, is_recent=True, is_judged_again=True),
    row(
        passkeys.begin_confirming,
        Who.SELF,
        Scope.ACCOUNT,
        lambda w, _, a: passkeys.begin_confirming(w.db, PARTY, a, w.browser()),
    ),
    row(
        passkeys.confirm_by_passkey,
        Who.SELF,
        Scope.ACCOUNT,
        confirm_by_passkey,
        answer="passkey_refused",
    ),
    row(identities.remove_identity, Who.SELF, None, remove_identity, is_recent=True, is_judged_again=True),
    row(
        identities.begin_at_provider,
        Who.ANYBODY,
        None,
        to_provider(Purpose.SIGN_IN),
        variant="to sign in",
    ),
    row(
        identities.begin_at_provider,
        Who.SELF,
        Scope.ACCOUNT,
        to_provider(Purpose.ADD),
        is_recent=True,
        no_actor="flow_over",
        variant="to link",
    ),
    row(
        identities.begin_at_provider,
        Who.SELF,
        Scope.ACCOUNT,
        to_provider(Purpose.STEP_UP),
        no_actor="flow_over",
        variant="to confirm",
    ),
    row(
        identities.finish_at_provider,
        Who.ANYBODY,
        None,
        back_from_provider(Purpose.SIGN_IN),
        answer="provider_said_no",
        variant="to sign in",
    ),
    *(
        row(
            identities.finish_at_provider,
            Who.SELF,
            Scope.ACCOUNT,
            back_from_provider(purpose),
            answer="provider_said_no",
            no_actor="flow_over",
            variant=purpose.value,
        )
        for purpose in (Purpose.ADD, Purpose.STEP_UP)
    ),
    row(
        erasing.export_person,
        Who.SELF,
        Scope.ACCOUNT,
        to_self(erasing.export_person),
        is_judged_again=True,
        variant="oneself",
    ),
    row(
        erasing.erase_person,
        Who.SELF,
        Scope.ACCOUNT,
        to_self(erasing.erase_person),
        is_recent=True,
        special=owns_clubs,
        is_judged_again=True,
        variant="oneself",
    ),
]

OPERATORS = [
    row(
        erasing.export_person,
        Who.OPERATOR,
        Scope.OPERATOR,
        to_guest(erasing.export_person),
        refusal="person_unknown",
        variant="somebody else",
    ),
    row(
        erasing.erase_person,
        Who.OPERATOR,
        Scope.OPERATOR,
        to_guest(erasing.erase_person),
        is_recent=True,
        refusal="person_unknown",
        variant="somebody else",
    ),
    row(
        service.add_person,
        Who.OPERATOR,
        Scope.OPERATOR,
        lambda w, _, a: service.add_person(w.db, "newcomer@example.org", "New", actor=a),
    ),
    row(service.block_person, Who.OPERATOR, Scope.OPERATOR, to_guest(service.block_person), is_recent=True),
    row(
        service.unblock_person, Who.OPERATOR, Scope.OPERATOR, to_guest(service.unblock_person), is_recent=True
    ),
    row(
        service.set_operator,
        Who.OPERATOR,
        Scope.OPERATOR,
        to_guest(service.set_operator, is_operator=True),
        is_recent=True,
    ),
    row(
        queries.person_for_operators,
        Who.OPERATOR,
        Scope.OPERATOR,
        lambda w, tx, a: queries.person_for_operators(tx, a, w.guest.person_id),
    ),
    *(
        row(one, Who.OPERATOR, Scope.OPERATOR, own(one))
        for one in (queries.people_page, queries.audit_page, operator_mail.mail_in_trouble)
    ),
]
