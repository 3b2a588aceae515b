"""What can go wrong with VRChat, as a closed list of codes and one exception class for each family.

Only VRChat's own error envelope settles anything. A status line or a page from a proxy in front of it, or
garbage that it sends under load, looks like an answer and is none.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from lastcall.errors import LastcallError
from lastcall.protocol.constants import RETRY_DELAY_USUAL
from lastcall.protocol.outcomes import TRANSIENT_CODES, Code

DEFAULT_RETRY_AFTER = RETRY_DELAY_USUAL.total_seconds()
"""Seconds to wait after a 429 that names no time."""

LONGEST_RETRY_AFTER = 366 * 86_400.0
"""Seconds. A longer wait is cut to this, so that date arithmetic stays finite; it is past every grace
anyway."""


class ProviderFault(LastcallError):
    """VRChat, or the way to it, did not give what was asked for. ``retry_after`` is in seconds, when it was
    named.

    ``stops_account`` says that the whole account has to stop asking, whatever the work in hand was.
    """

    status = 502
    reason = Code.PROVIDER_ERROR
    stops_account = False

    def __init__(self, sentence: str, *, advice: str = "", retry_after: float | None = None) -> None:
        super().__init__(self.reason.value, sentence, advice=advice)
        self.retry_after = retry_after

    @property
    def is_transient(self) -> bool:
        """Whether the same call may work later; such a fault defers work that was not sent (WRK-18)."""
        return self.reason in TRANSIENT_CODES


class Authentication(ProviderFault):
    """401. The account stops."""

    reason = Code.AUTHENTICATION
    stops_account = True


class AuthRequired(Authentication):
    """The session is over, also on a second look: only a person who signs in again helps."""


class WrongAccount(AuthRequired):
    """The session is good, but it belongs to another VRChat account than this collector's."""


class RateLimit(ProviderFault):
    """429. ``retry_after`` is always set; the account asks nothing until it is over."""

    reason = Code.RATE_LIMIT
    stops_account = True


class Membership(ProviderFault):
    """The account is not a member of the group."""

    reason = Code.MEMBERSHIP


class ProviderPermissions(ProviderFault):
    """The group does not grant the account what the call needs."""

    reason = Code.PROVIDER_PERMISSIONS


class ProtectedTarget(ProviderFault):
    """The account itself, or the owner of the VRChat group."""

    reason = Code.PROTECTED_TARGET


class RoleScope(ProviderFault):
    """The role is not one of the group's."""

    reason = Code.ROLE_SCOPE


class ProviderScope(ProviderFault):
    """An answer about another group or person than the one asked for."""

    reason = Code.PROVIDER_SCOPE


class DestinationScope(ProviderFault):
    """The instance belongs to another group, or the answer is about another instance."""

    reason = Code.DESTINATION_SCOPE


class DestinationClosed(ProviderFault):
    """Nobody can join the instance any more."""

    reason = Code.DESTINATION_CLOSED


class NotFriends(ProviderFault):
    """The person is no friend of the account, so VRChat would not take the invite."""

    reason = Code.FRIENDSHIP


class GroupVisibility(ProviderFault):
    """A public instance in a group that is not public."""

    reason = Code.GROUP_VISIBILITY


class NotVisible(ProviderFault):
    """404: not there, or not for this account to see."""

    reason = Code.VISIBILITY


class NoGroup(NotVisible):
    """404 about the group itself, whatever was asked for in it: gone, or hiding from the account."""


class Refused(ProviderFault):
    """Another refusal in VRChat's own envelope."""

    reason = Code.PROVIDER_ERROR


class InvalidInput(ProviderFault):
    """The payload breaks a rule of its kind; nothing was asked."""

    reason = Code.INVALID_INPUT


class UnsupportedOperation(ProviderFault):
    """A kind of operation that this collector does not know; nothing was asked."""

    reason = Code.UNSUPPORTED_OPERATION


class Transient(ProviderFault):
    """VRChat or something in front of it is unwell: 5xx, 408, a proxy's page, a body that is no JSON."""

    reason = Code.TRANSIENT


class Timeout(ProviderFault):
    """No whole answer within the total time."""

    reason = Code.TIMEOUT


class Network(ProviderFault):
    """No connection, or one that broke."""

    reason = Code.NETWORK


class SchemaDrift(ProviderFault):
    """JSON, but not of the expected shape. It is no evidence of anything."""

    reason = Code.SCHEMA_DRIFT


# -------------------------------------------------------------------------------------------------- envelope


@dataclass(frozen=True)
class Envelope:
    """VRChat's own error body. ``message`` is as it came; compare it only through ``fold``."""

    message: str
    status: int


def parse_json(body: bytes) -> Any:
    """Decode, or raise ``ValueError`` for anything that is not JSON, absurdly deep nesting included."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError("not JSON") from error


def parse_envelope(body: bytes) -> Envelope | None:
    """The error envelope in ``body``, or ``None``.

    Three forms exist: ``{"error": {"message", "status_code"}}``, ``{"message", "statusCode"}`` and, for posts
    that are gone, ``{"success": {"message", "status_code"}}`` about a status that is no success.
    """
    try:
        document = parse_json(body)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    nested = document.get("error", document.get("success"))
    is_success = "error" not in document and "success" in document
    if isinstance(nested, dict):
        message, status = nested.get("message"), nested.get("status_code")
    else:
        message, status = document.get("message"), document.get("statusCode")
    if not isinstance(message, str) or not isinstance(status, int) or isinstance(status, bool):
        return None
    return None if is_success and status < HTTPStatus.BAD_REQUEST else Envelope(message, status)


_LOOK_ALIKES = str.maketrans(
    {"\u2024": ".", "\u01c3": "!", "\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"'}
)


def fold(text: str) -> str:
    """``text`` for comparing: look-alike characters, quotes around it, case and runs of white space evened
    out.

    VRChat writes U+2024 for a full stop and U+01C3 for an exclamation mark, and puts some messages into
    quotes.
    """
    folded = unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKES)).translate(_LOOK_ALIKES)
    return re.sub(r"\s+", " ", folded).strip().strip('"').strip().casefold()


# ----------------------------------------------------------------------------------------------- Retry-After


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds of a ``Retry-After`` header, or ``None`` when there is none that means anything.

    Whole or broken seconds and HTTP dates are read; a date in the past is 0. Negative, infinite and
    unreadable values count as missing, absurd ones as ``LONGEST_RETRY_AFTER``.
    """
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(r"\+?[0-9]+(\.[0-9]+)?", text, re.ASCII):
        return min(float(text), LONGEST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    delay = (moment - now).total_seconds()
    return min(max(0.0, delay), LONGEST_RETRY_AFTER) if math.isfinite(delay) else None
