"""What somebody asks for: its form, whether they may, and the rules of its kind. Nothing here looks at the database;
the standing was read with the club's gate held.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.errors import Invalid, NotAllowed
from lastcall.operations.digest import request_digest
from lastcall.operations.kinds import kind_named
from lastcall.operations.kinds.kind import Kind, Payload, fields_of
from lastcall.operations.schedules import Schedule
from lastcall.operations.schedules import check_form as check_schedule

MOST_PAYLOADS = 100
"""A request holds at most so many (ENQ-02)."""

APPROVAL_KEY = "approval_"
"""How the request ids begin that approvals make, and no others: one that somebody else took would make the approval of
it impossible."""

_REQUEST_KEY = re.compile(r"[A-Za-z0-9_-]{8,100}")


@dataclass(frozen=True)
class Asked:
    """A request whose form is right and whose asker may make it. ``targets`` are what makes two of its payloads the
    same."""

    request_key: str
    kind: Kind[Any]
    payloads: list[Payload]
    targets: list[str]
    schedule: Schedule
    digest: bytes


def check_form(
    request_key: str,
    payloads: Sequence[Mapping[str, Any]],
    schedule: Schedule,
    *,
    for_approval: bool = False,
) -> None:
    """Raises ``Invalid`` for a request id, a number of payloads or a schedule that never can be right."""
    if _REQUEST_KEY.fullmatch(request_key) is None:
        raise Invalid(
            "request_id_invalid",
            "A request id has 8 to 100 letters, digits, hyphens or underscores.",
            field="requestId",
        )
    if request_key.startswith(APPROVAL_KEY) != for_approval:
        raise Invalid(
            "request_id_reserved",
            f"Request ids that begin with “{APPROVAL_KEY}” are those of approvals.",
            advice="Choose another request id.",
            field="requestId",
        )
    if not 1 <= len(payloads) <= MOST_PAYLOADS:
        raise Invalid(
            "payload_count",
            f"A request holds 1 to {MOST_PAYLOADS} actions; this one holds {len(payloads)}.",
            advice="Split it into several requests." if payloads else "Add at least one target.",
            field="payloads",
        )
    check_schedule(schedule)


def read_asked(
    standing: Standing | None, request_key: str, payloads: Sequence[Mapping[str, Any]], schedule: Schedule
) -> Asked:
    """The request, once the asker may make it: the permission of each payload, and the role it gives, come before
    anything that would tell what is stored (ENQ-12). Raises ``NotAllowed`` or ``Invalid``.

    Without a ``standing`` nobody asks yet: what is prepared for somebody else to approve.
    """
    kinds = [kind_named(fields.get("kind"), f"payloads.{n}.kind") for n, fields in enumerate(payloads)]
    for kind in kinds:
        if standing is not None and not standing.holds(kind.permission):
            raise permission_missing(kind.permission)
    kind = kinds[0]
    if any(other is not kind for other in kinds):
        raise _bulk_refused()
    parsed = [parse(kind, fields, f"payloads.{n}") for n, fields in enumerate(payloads)]
    if standing is not None:
        for n, payload in enumerate(parsed):
            require_roles(standing, kind, payload, f"payloads.{n}.roleId")
    digest = request_digest(kind.name, [fields_of(payload) for payload in parsed], schedule)
    targets = [kind.target(payload) for payload in parsed]
    return Asked(request_key, kind, parsed, targets, schedule, digest)


def check_rules(asked: Asked) -> None:
    """The rules of the kind for several at once (ENQ-04, ENQ-13). Raises ``Invalid``."""
    if len(asked.payloads) > 1 and not asked.kind.is_bulk:
        raise _bulk_refused()
    seen: dict[str, int] = {}
    for n, target in enumerate(asked.targets):
        first = seen.setdefault(target, n)
        if first != n:
            raise duplicate_recipient(
                f"Number {n + 1} is the same as number {first + 1}; remove one of them.",
                field=f"payloads.{n}.targetUserId",
            )


def parse(kind: Kind[Any], fields: Mapping[str, Any], where: str) -> Payload:
    """The payload beside whose fields its kind is named."""
    payload: Payload = kind.parse({name: value for name, value in fields.items() if name != "kind"}, where)
    return payload


def parse_same_kind(kind: Kind[Any], fields: Mapping[str, Any], where: str) -> Payload:
    """The payload that takes the place of one of ``kind``, which stays what it is (EDT-05)."""
    if fields.get("kind") != kind.name:
        raise Invalid(
            "kind_fixed",
            f"This is and stays “{kind.words.label}”.",
            advice="Cancel it and queue another action for something else.",
            field=f"{where}.kind",
        )
    return parse(kind, fields, where)


def require_roles(standing: Standing, kind: Kind[Any], payload: Payload, field: str) -> None:
    """Raises ``NotAllowed`` when the payload gives a role that is not on the asker's list."""
    if not all(standing.may_assign(role_id) for role_id in kind.role_ids(payload)):
        error = NotAllowed(
            "role_not_assignable",
            "None of your roles lets you assign this VRChat role.",
            advice="Ask the owner of the club to permit it for a role of yours.",
        )
        error.field = field
        raise error


def permission_missing(permission: Permission) -> NotAllowed:
    return NotAllowed(
        "permission_missing",
        f"This needs the permission “{permission.label}”, which none of your roles has.",
        advice="Ask the owner of the club for a role that has it.",
    )


def duplicate_recipient(advice: str, *, field: str) -> Invalid:
    return Invalid("duplicate_recipient", "Duplicate recipient.", advice=advice, field=field)


def _bulk_refused() -> Invalid:
    return Invalid(
        "bulk_refused",
        "Several at once must be invitations, request decisions or role assignments, all of one kind.",
        advice="Queue them one by one.",
        field="payloads",
    )
