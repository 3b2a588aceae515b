"""A VRChat account's session: signing in, proving who the account is, and stopping when VRChat says no.

Nothing here signs in by itself. Each sign-in by password is a new session for VRChat, and too many lock the
account for hours: so only a person's act does it, and the cookie is kept.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from lastcall.vrchat.errors import Authentication, AuthRequired, WrongAccount
from lastcall.vrchat.totp import totp
from lastcall.vrchat.transport import Answer, Read, Transport, decode, fault_of

AskCode = Callable[[str], Awaitable[str]]
"""Asks the person at the terminal for a code; told ``"totp"`` (authenticator) or ``"emailOtp"`` (sent by
mail)."""


@dataclass(frozen=True)
class Credentials:
    """Typed at the collector. With ``totp_secret`` (base32) the code is worked out, else it is asked for."""

    username: str = field(repr=False)
    password: str = field(repr=False)
    totp_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Identity:
    """Who VRChat says the account is. ``joined_on``: since when VRChat knows it, where it says so."""

    user_id: str
    display_name: str
    joined_on: date | None = None


class _CurrentUser(msgspec.Struct, rename="camel"):
    """``GET /auth/user``: the user, or the question for a second factor with status 200."""

    id: str | None = None
    display_name: str | None = None
    requires_two_factor_auth: list[str] | None = None
    date_joined: Any = msgspec.field(name="date_joined", default=None)

    @property
    def joined_on(self) -> date | None:
        """The account's age only slows its writes down, so an unreadable date is no reason to stop."""
        try:
            return date.fromisoformat(self.date_joined)
        except (TypeError, ValueError):
            return None


class _Verified(msgspec.Struct):
    verified: bool


class Session:
    """The session of the one account that must have ``user_id``; ``None`` while that is still to be found
    out.

    After ``AuthRequired`` every call raises it again without asking VRChat, until somebody signs in.
    """

    def __init__(self, transport: Transport, user_id: str | None) -> None:
        self._transport = transport
        self._user_id = user_id
        self._is_over = False

    async def identity(self) -> Read[Identity]:
        """Read who the account is. After a 401 (``Authentication``) the caller looks once more, by ``probe``.

        Raises ``AuthRequired``, ``WrongAccount``, and the faults of any read.
        """
        if self._is_over or self._transport.cookies.header() is None:
            raise self._over()
        asked_at = self._transport.clock.boot()
        user = _current_user(await self._transport.exchange("GET", "/auth/user"))
        if user.requires_two_factor_auth is not None or user.id is None:
            raise self._over()
        if self._user_id is not None and user.id.casefold() != self._user_id.casefold():
            self._is_over = True
            raise WrongAccount(
                "This session belongs to another VRChat account.",
                advice="Sign in with the account that this collector was set up for.",
            )
        return Read(Identity(user.id, user.display_name or "", user.joined_on), asked_at)

    async def probe(self) -> Read[Identity]:
        """The one second look after a 401 anywhere. Raises ``AuthRequired`` when the answer is 401 again."""
        try:
            return await self.identity()
        except AuthRequired:
            raise
        except Authentication as fault:
            raise self._over() from fault

    async def sign_in(self, credentials: Credentials, ask_code: AskCode) -> Identity:
        """Make a new session with password and second factor. Raises ``Authentication`` when VRChat refuses
        them."""
        self._transport.cookies.forget("auth")
        pair = f"{quote(credentials.username, safe='')}:{quote(credentials.password, safe='')}"
        answer = await self._transport.exchange(
            "GET", "/auth/user", authorization="Basic " + base64.b64encode(pair.encode()).decode("ascii")
        )
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise Authentication(
                "VRChat refused this user name and password.", advice="Check both and try again."
            )
        user = _current_user(answer)
        if user.requires_two_factor_auth is not None:
            await self._second_factor(user.requires_two_factor_auth, credentials, ask_code)
        self._is_over = False
        try:
            return (await self.identity()).value
        except WrongAccount:
            self._transport.cookies.forget()
            raise

    async def sign_out(self) -> None:
        """End the session at VRChat and forget it here, also when VRChat does not answer."""
        try:
            await self._transport.exchange("PUT", "/logout")
        finally:
            self._transport.cookies.forget("auth")

    async def _second_factor(self, methods: list[str], credentials: Credentials, ask_code: AskCode) -> None:
        if "totp" in methods:
            secret = credentials.totp_secret
            code = (
                totp(secret, self._transport.clock.wall()) if secret is not None else await ask_code("totp")
            )
            path = "/auth/twofactorauth/totp/verify"
        elif "emailOtp" in methods:
            # VRChat also asks accounts without two-factor for a mailed code, when the place is new to it.
            code = await ask_code("emailOtp")
            path = "/auth/twofactorauth/emailotp/verify"
        else:
            raise Authentication("VRChat asks for a second factor that Lastcall does not know.")
        answer = await self._transport.exchange("POST", path, json={"code": code.strip()})
        is_ok = answer.status == HTTPStatus.OK and decode(answer.body, _Verified).verified
        if not is_ok:
            if answer.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.OK):
                raise Authentication(
                    "VRChat did not accept the code.", advice="Wait for the next code and try again."
                )
            raise fault_of(answer)

    def _over(self) -> AuthRequired:
        self._is_over = True
        return AuthRequired(
            "The VRChat account is not signed in.",
            advice="Start the collector in a terminal with --sign-in-anew, "
            "then say `lastcall account ready` at the server.",
        )


def _current_user(answer: Answer) -> _CurrentUser:
    if answer.status != HTTPStatus.OK:
        raise fault_of(answer)
    return decode(answer.body, _CurrentUser)
