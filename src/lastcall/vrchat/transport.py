"""The one way to VRChat. Reads may be repeated by whoever needs them; a write goes out once or not at all.

``send_once`` makes exactly one HTTP/1.1 request on a connection of its own. Nothing in it tries again: no
retry, no redirect, no kept-alive connection that a peer may have closed, no proxy from the environment
(WRK-15). One total time covers all of it, so that a body which drips byte by byte ends too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from lastcall import __version__
from lastcall.clock import Clock
from lastcall.errors import Invalid
from lastcall.protocol.constants import TRANSPORT_TIMEOUT
from lastcall.protocol.outcomes import Code
from lastcall.protocol.steps import Step
from lastcall.vrchat import errors
from lastcall.vrchat.cookies import Cookies
from lastcall.wire import AnswerTooLong, HeldBack, Reply, WireFault, Wires

BODY_CAP: Final = 2 * 1024 * 1024
"""Bytes of an answer's body that are read at most."""

READS_AT_A_TIME: Final = 4
"""Reads of one account that are under way at a time; the others wait."""

KEPT: Final = (2, 5.0)
"""How many connections wait for the next read, and for how many seconds."""

StepObserver = Callable[[Step], Awaitable[None]]
"""Told of ``first_byte_out`` (the head has been handed to the network) and ``reply_read`` (the whole answer
is here)."""

_USER_AGENT = re.compile(r"[\w.-]+/[\w.+-]+ \S.{2,}", re.ASCII)
_PATH = re.compile(r"(/([A-Za-z0-9_~.:()-]|%[0-9A-F]{2})+)+", re.ASCII)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """A whole HTTP answer, from whomever. ``is_framed`` says that its length was declared, so that nothing
    is cut off."""

    status: int
    body: bytes
    retry_after: float | None = None
    is_framed: bool = True


@dataclass(frozen=True)
class NoAnswer:
    """Bytes may have left, and no whole answer came back: whether the write happened is unknown (WRK-14)."""

    code: Code
    detail: str


@dataclass(frozen=True)
class NotSent:
    """Not one byte of the request left: the write did not happen."""

    code: Code
    detail: str


SendResult = Answer | NoAnswer | NotSent


@dataclass(frozen=True)
class Read(Generic[T]):
    """What a read gave. ``asked_at`` is the clock's boot time from before the request: the value is at
    least that fresh."""

    value: T
    asked_at: float


def user_agent_for(contact: str) -> str:
    """The structured User-Agent that VRChat asks of every client: application, version, contact."""
    return f"Lastcall/{__version__} {contact.strip()}"


class Transport:
    """Calls to VRChat for one account.

    ``base_url`` ends before the first path segment of an endpoint (``https://api.vrchat.cloud/api/1``) and
    must be https, but on loopback. ``user_agent`` needs an application, a version and a contact. Close it
    after use.
    """

    def __init__(
        self,
        base_url: str,
        user_agent: str,
        cookies: Cookies,
        clock: Clock,
        *,
        total: timedelta = TRANSPORT_TIMEOUT,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise Invalid("base_url", "VRChat's address must start with https://.", field="base_url")
        if not _USER_AGENT.fullmatch(user_agent):
            raise Invalid(
                "user_agent",
                "VRChat requires a User-Agent with application, version and contact.",
                advice="Set a contact, for example an e-mail address that you read.",
                field="user_agent",
            )
        self._user_agent = user_agent
        self.cookies = cookies
        self.clock = clock
        self._total = total.total_seconds()
        self._wires = Wires(base_url, keep=KEPT)
        self._room = asyncio.Semaphore(READS_AT_A_TIME)

    async def close(self) -> None:
        """Close the connections kept for reads."""
        self._wires.close()

    # ------------------------------------------------------------------------------------------------- reads

    async def get(self, path: str, shape: type[T], params: Mapping[str, str] | None = None) -> Read[T]:
        """GET ``path`` and validate its JSON against ``shape``. Raises a ``ProviderFault`` for anything
        else."""
        asked_at = self.clock.boot()
        answer = await self.exchange("GET", path, params=params)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise fault_of(answer)
        return Read(decode(answer.body, shape), asked_at)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        authorization: str | None = None,
    ) -> Answer:
        """A read, or a step of signing in; the group's state never changes this way. Raises Timeout or
        Network."""
        if method != "GET" and not path.startswith("/auth/") and path != "/logout":
            raise ValueError("writes go through send_once")
        target, headers, body = self._request(path, params, json, authorization)
        try:
            async with asyncio.timeout(self._total), self._room:
                return self._answer(await self._wires.exchange(method, target, headers, body, BODY_CAP))
        except TimeoutError as error:
            raise errors.Timeout("VRChat did not answer in time.") from error
        except WireFault as error:
            raise errors.Network("The connection to VRChat failed.") from error
        except AnswerTooLong as error:
            raise errors.SchemaDrift("VRChat's answer is longer than any expected one.") from error

    # ------------------------------------------------------------------------------------------------- writes

    async def send_once(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        may_send: Callable[[], bool] | None = None,
        on_step: StepObserver | None = None,
    ) -> SendResult:
        """Send one write, once.

        ``may_send`` is the last look: asked with the connection open, immediately before the first byte; a
        no is ``NotSent``. Never raises for what the network or the peer does. Cancelling it leaves the
        outcome unknown.
        """
        if method not in ("PUT", "POST", "DELETE"):
            raise ValueError("send_once is for writes")
        target, headers, body = self._request(path, params, json)
        departed = False

        def departs() -> bool:
            nonlocal departed
            departed = may_send is None or may_send()
            return departed

        async def on_sent() -> None:
            if on_step is not None:
                await on_step(Step.FIRST_BYTE_OUT)

        headers.append(("Connection", "close"))
        try:
            async with asyncio.timeout(self._total):
                reply = await self._wires.exchange(
                    method, target, headers, body, BODY_CAP, is_first=True, may_send=departs, on_sent=on_sent
                )
                answer = self._answer(reply)
            if on_step is not None:
                await on_step(Step.REPLY_READ)
        except HeldBack:
            return NotSent(Code.NOT_ATTEMPTED, "held back before the first byte")
        except TimeoutError:
            code, detail = Code.TIMEOUT, "no whole answer in time"
        except WireFault as error:
            code, detail = Code.NETWORK, str(error)
        except AnswerTooLong:
            code, detail = Code.SCHEMA_DRIFT, "the answer is longer than any expected one"
        else:
            return answer
        return NoAnswer(code, detail) if departed else NotSent(code, detail)

    # ------------------------------------------------------------------------------------------ what both do

    def _request(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        authorization: str | None = None,
    ) -> tuple[str, list[tuple[str, str]], bytes]:
        """Target, headers and body."""
        if not _PATH.fullmatch(path) or "/.." in path or "/./" in path:
            raise ValueError(f"not a path of VRChat's API: {path!r}")
        headers = [
            ("User-Agent", self._user_agent),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
        ]
        cookie = self.cookies.header()
        if cookie is not None:
            headers.append(("Cookie", cookie))
        if authorization is not None:
            headers.append(("Authorization", authorization))
        body = b""
        if json is not None:
            headers.append(("Content-Type", "application/json"))
            body = msgspec.json.encode(json)
        return f"{path}?{urlencode(params, quote_via=quote)}" if params else path, headers, body

    def _answer(self, reply: Reply) -> Answer:
        names = {name for name, _value in reply.headers}
        self.cookies.remember(
            value.decode("latin-1") for name, value in reply.headers if name == b"set-cookie"
        )
        return Answer(
            reply.status,
            reply.body,
            errors.parse_retry_after(reply.header(b"retry-after"), self.clock.wall()),
            is_framed=b"content-length" in names or b"transfer-encoding" in names,
        )


def decode(body: bytes, shape: type[T]) -> T:
    """``body`` as ``shape``. No JSON at all is ``Transient`` (VRChat under load, a proxy), another shape
    SchemaDrift."""
    try:
        document = errors.parse_json(body)
    except ValueError as error:
        raise errors.Transient("VRChat sent something that is no JSON.") from error
    try:
        return msgspec.convert(document, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        raise errors.SchemaDrift("VRChat's answer has another shape than expected.") from error


_NOT_A_MEMBER = ("you're not a member.", "you're not a member of this group.")
_NO_GROUP = ("can't find group!", "can't find group.")


def fault_of(answer: Answer) -> errors.ProviderFault:
    """The fault that a read's answer means. Without VRChat's own envelope it is never more than
    ``Transient``."""
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = errors.DEFAULT_RETRY_AFTER if answer.retry_after is None else answer.retry_after
        return errors.RateLimit("VRChat asks for a pause.", retry_after=wait)
    envelope = errors.parse_envelope(answer.body)
    is_refusal = HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
    if envelope is None or envelope.status != answer.status or not is_refusal or answer.status == 408:
        return errors.Transient("VRChat is not well at the moment.", retry_after=answer.retry_after)
    match answer.status:
        case HTTPStatus.UNAUTHORIZED:
            return errors.Authentication("VRChat does not accept the session.")
        case HTTPStatus.FORBIDDEN:
            if errors.fold(envelope.message) in _NOT_A_MEMBER:
                return errors.Membership("The account is not a member of the group.")
            return errors.ProviderPermissions("The group does not let the account do this.")
        case HTTPStatus.NOT_FOUND:
            if errors.fold(envelope.message) in _NO_GROUP:
                return errors.NoGroup("VRChat knows no such group, or does not show it to the account.")
            return errors.NotVisible("VRChat does not show this to the account.")
        case _:
            return errors.Refused("VRChat refused the call.")
