"""The fields of every kind as a form has them, made from the payload that the kind declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints
from urllib.parse import unquote

import msgspec

from lastcall.errors import Invalid
from lastcall.operations.kinds.fields import SHAPES
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.services.asked import MOST_PAYLOADS
from lastcall.web.recipients import Recipients, read_recipients

TEXT_MOST = 12_000
"""Characters of one field that are looked at; more than any kind takes."""


@dataclass(frozen=True)
class Choice:
    value: str
    label: str
    about: str = ""


@dataclass(frozen=True)
class Field:
    """One field of a form. ``name`` is what the form calls it, ``payload`` what the action does; ``widget`` is a macro
    of ``fields.html``.
    """

    name: str
    payload: str
    label: str
    widget: str
    hint: str = ""
    choices: tuple[Choice, ...] = ()


FIELDS: dict[str, Field] = {
    "role_id": Field("role", "roleId", "Role", "role"),
    "creation_operation_id": Field(
        "creation",
        "creationOperationId",
        "Instance",
        "creation",
        "The action that opens it. The invitations wait for it, and stop when it does not come about.",
    ),
    "world_id": Field(
        "world", "worldId", "World", "line", "The world's id or the address of its page: wrld_ and the rest."
    ),
    "instance_id": Field(
        "instance",
        "instanceId",
        "Instance",
        "line",
        "The part after the world's id, such as 12345~group(grp_…)~region(eu). Its whole address will do, too.",
    ),
    "target_user_id": Field("people", "targetUserId", "People, one a line", "people"),
    "message_slot": Field(
        "slot", "messageSlot", "Saved message", "line", "A number from 0 to 11; empty sends none."
    ),
    "post_id": Field("post", "postId", "Post", "line", "The post's id from VRChat: not_ and the rest."),
    "title": Field("title", "title", "Title", "line"),
    "text": Field("text", "text", "Text", "text"),
    "visibility": Field(
        "visibility",
        "visibility",
        "Who sees it",
        "choice",
        choices=(
            Choice("group", "The group", "its members, or some of its roles"),
            Choice("public", "Everybody", "also who is no member"),
        ),
    ),
    "access": Field(
        "access",
        "access",
        "Who may join",
        "choice",
        choices=(
            Choice("members", "Members", "of the group"),
            Choice("plus", "Members and friends", "VRChat calls it Group+"),
            Choice("public", "Everybody", "only for a public group"),
        ),
    ),
    "region": Field(
        "region",
        "region",
        "Region",
        "choice",
        choices=(
            Choice("eu", "Europe"),
            Choice("us", "US West"),
            Choice("use", "US East"),
            Choice("jp", "Japan"),
        ),
    ),
    "role_ids": Field("roles", "roleIds", "Only for these roles", "roles", "None ticked: for all of them."),
    "send_notification": Field("notify", "sendNotification", "Notify the members", "flag"),
    "age_gated": Field("age", "ageGated", "Only for adults (18+)", "flag"),
    "queue_enabled": Field("queue", "queueEnabled", "Let people queue while it is full", "flag"),
    "image_id": Field(
        "image", "imageId", "Image", "line", "The id of an image at VRChat: file_ and the rest."
    ),
    "calendar_entry_id": Field(
        "calendar",
        "calendarEntryId",
        "Calendar entry",
        "line",
        "The id of an entry in VRChat's calendar: cal_ and the rest.",
    ),
}
"""By the payload's own names, in the order of pages. The revision of a creation comes with the creation."""

_WORLD = re.compile(r"wrld_[0-9a-fA-F-]{36}")
_LAUNCH = re.compile(r"(wrld_[0-9a-fA-F-]{36})(?::|&instanceId=)([^&\s]+)")
_ID = {
    name: re.compile(rf"{prefix}_[0-9a-fA-F-]{{36}}")
    for name, prefix in {
        "world": "wrld",
        "post": "not",
        "image": "file",
        "calendar": "cal",
        "role": "grol",
    }.items()
}


@dataclass(frozen=True)
class Given:
    """What a person filled in. ``values`` is what the form shows again, by the names of its fields; ``fields`` the
    payload without the person; ``problems`` is by form field.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    recipients: Recipients = field(default_factory=lambda: Recipients((), ()))
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem_count(self) -> int:
        return len(self.problems) + len(self.recipients.problems)

    def payloads(self, kind: Kind[Any]) -> list[dict[str, Any]]:
        """One for each person, or the one of a kind that is about none."""
        if "target_user_id" not in kind.payload.__struct_fields__:
            return [{"kind": kind.name, **self.fields}]
        return [
            {"kind": kind.name, "targetUserId": person.user_id, **self.fields}
            for person in self.recipients.people
        ]


def fields_for(kind: Kind[Any]) -> list[Field]:
    """The form of a kind."""
    return [one for name, one in FIELDS.items() if name in kind.payload.__struct_fields__]


def is_required(kind: Kind[Any], one: Field) -> bool:
    return _attribute(one) in {known.name for known in msgspec.structs.fields(kind.payload) if known.required}


def read_given(kind: Kind[Any], form: Mapping[str, str], *, most: int | None = None) -> Given:
    """Read the fields of a form, with everything that is wrong with them. ``most``: people at most, where that is less
    than the kind takes."""
    values = {one.name: _clean(form.get(one.name, ""), one) for one in fields_for(kind)}
    _split_launch(values)
    problems: dict[str, str] = {}
    fields: dict[str, Any] = {}
    recipients = Recipients((), ())
    types = get_type_hints(kind.payload, include_extras=True)
    for one in fields_for(kind):
        text = values[one.name]
        if one.widget == "people":
            recipients = read_recipients(text, most or (MOST_PAYLOADS if kind.is_bulk else 1))
            if not recipients.people and not recipients.problems:
                problems[one.name] = "Nobody is named here yet."
            continue
        if not text and one.widget != "flag":
            if is_required(kind, one):
                problems[one.name] = _missing(one)
            continue
        if one.widget == "creation":
            _read_creation(text, fields, problems)
            continue
        value = _value(one, text)
        try:
            msgspec.convert(value, types[_attribute(one)])
        except msgspec.ValidationError:
            problems[one.name] = f"This must be {SHAPES[one.payload]}."
            continue
        if value or is_required(kind, one):
            fields[one.payload] = value
    if not problems:
        problems |= _together(kind, fields)
    return Given(values, fields, recipients, problems)


def values_of(kind: Kind[Any], payload: Mapping[str, Any]) -> dict[str, str]:
    """The form that says what a stored payload does."""
    values: dict[str, str] = {}
    for one in fields_for(kind):
        value = payload.get(one.payload)
        if one.widget == "creation":
            values[one.name] = f"{value}.{payload.get('creationRevision', '')}"
        elif one.widget == "flag":
            values[one.name] = "yes" if value else ""
        elif one.widget == "roles":
            values[one.name] = "\n".join(value or ())
        else:
            values[one.name] = "" if value is None else str(value)
    return values


def _attribute(one: Field) -> str:
    return next(name for name, known in FIELDS.items() if known is one)


def _clean(text: str, one: Field) -> str:
    if one.widget == "people":
        return text.strip()
    text = text[:TEXT_MOST].replace("\r\n", "\n")
    found = _ID[one.name].search(text) if one.name in _ID and one.name != "role" else None
    is_launch = ":" in text.replace("://", "") or "instanceId=" in text
    return found[0] if found and not is_launch else text.strip()


def _split_launch(values: dict[str, str]) -> None:
    """An instance's whole address, pasted into either field, fills both."""
    for name in ("instance", "world"):
        if "instance" not in values:
            return
        found = _LAUNCH.search(unquote(values.get(name, "")))
        if found:
            values["world"], values["instance"] = found[1], found[2]
            return


def _value(one: Field, text: str) -> Any:
    match one.widget:
        case "flag":
            return text == "yes"
        case "roles":
            return tuple(line.strip() for line in text.splitlines() if line.strip())
    if one.name == "slot":
        return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
    return text


def _read_creation(text: str, fields: dict[str, Any], problems: dict[str, str]) -> None:
    operation_id, _, revision = text.partition(".")
    if not (revision.isascii() and revision.isdigit() and len(revision) < 10):
        problems["creation"] = "Choose the action that opens the instance."
        return
    fields |= {"creationOperationId": operation_id, "creationRevision": int(revision)}


def _missing(one: Field) -> str:
    match one.widget:
        case "role":
            return "Choose the role."
        case "choice" | "creation":
            return "Choose one."
    return "This is empty."


def _together(kind: Kind[Any], fields: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong between fields that are right by themselves."""
    person = {"targetUserId": _NOBODY} if "target_user_id" in kind.payload.__struct_fields__ else {}
    try:
        kind.parse({**person, **fields}, "payload")
    except Invalid as error:
        named = (error.field or "").removeprefix("payload.")
        name = next((one.name for one in fields_for(kind) if one.payload == named), fields_for(kind)[0].name)
        return {name: f"{error.sentence} {error.advice or ''}".strip()}
    return {}


_NOBODY = "usr_00000000-0000-0000-0000-000000000000"
