"""Which calls are let in: the right protocol, a current key, an account that may work, a well-formed body."""

from __future__ import annotations

import re
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from litestar import Request

from lastcall.connections.keys import KeyRing
from lastcall.connections.refusals import key_refused
from lastcall.connections.worker import Worker
from lastcall.db.ids import decode_id
from lastcall.errors import Invalid, LastcallError
from lastcall.protocol.constants import PROTOCOL_MISMATCH, PROTOCOL_VERSION
from lastcall.protocol.messages import Call, Complete

Sent = TypeVar("Sent", bound=Call)
WorkerRequest = Request[Any, Any, Any]

_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?$", re.DOTALL)
_SAME_VERSION = "Run a collector of the same release as the server."


async def admit(request: WorkerRequest, keys: KeyRing, kind: type[Sent]) -> tuple[Sent, Worker]:
    """The call and who sent it. Raises 422 for another protocol or a malformed body, 401 for a key or VRChat
    user that is not the account's, 423 for a disabled account.

    ``complete`` alone passes for a disabled account: what was sent is recorded whatever happened since
    (WRK-07).
    """
    _require_protocol(request)
    account_id, key = _credentials(request)
    verified = await keys.verify(account_id, key)
    if kind is not Complete:
        await keys.require_enabled(account_id)
    call = decode(await request.body(), kind)
    return call, verified.worker(decode_id(call.worker_id), call.vrchat_user_id)


def decode(body: bytes, kind: type[Sent]) -> Sent:
    """The body as that call; ``Invalid`` names the field that does not fit."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        what, where = (found["what"], found["where"]) if found else (str(error), None)
        place = f" in “{where}”" if where else ""
        raise Invalid(
            "malformed_call",
            f"The call is malformed{place}: {_said(what)}.",
            advice=_SAME_VERSION,
            field=where,
        ) from error
    except msgspec.DecodeError as error:
        raise Invalid(
            "malformed_call", "The call's body is not a JSON object.", advice=_SAME_VERSION
        ) from error


def _said(what: str) -> str:
    text = what.replace("`", "").strip().rstrip(".")
    return text[:1].lower() + text[1:]


def _require_protocol(request: WorkerRequest) -> None:
    spoken = request.headers.get("lastcall-protocol")
    if spoken != str(PROTOCOL_VERSION):
        raise Invalid(
            PROTOCOL_MISMATCH,
            f"This server speaks worker protocol {PROTOCOL_VERSION}, the call says “{(spoken or '')[:20]}”.",
            advice=_SAME_VERSION,
            field="Lastcall-Protocol",
        )


def _credentials(request: WorkerRequest) -> tuple[UUID, str]:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise key_refused()
    try:
        return decode_id(request.headers.get("lastcall-account", "")), key.strip()
    except LastcallError as error:
        raise key_refused() from error
