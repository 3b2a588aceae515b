"""A kind is one file on each side; both must mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from lastcall.errors import Invalid
from lastcall.operations import kinds
from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.kind import fields_of, target_user_id, title
from lastcall.vrchat.writes import WRITES

FILES = {path.stem for path in Path(kinds.__file__).parent.glob("*.py")} - {"__init__", "kind", "fields"}
U = "00000000-0000-4000-8000-00000000000"
INSTANCE = f"12345~region(jp)~group(grp_{U}1)~ageGate"
PERSON = {"targetUserId": f"usr_{U}1"}
POST = {
    "title": "Tonight",
    "text": "Doors at nine.",
    "visibility": "group",
    "sendNotification": False,
    "imageId": f"file_{U}1",
    "roleIds": [f"grol_{U}1"],
}
PAYLOADS: dict[str, dict[str, Any]] = {
    "approve_request": PERSON,
    "reject_request": PERSON,
    "invite_member": PERSON,
    "cancel_member_invite": PERSON,
    "remove_member": PERSON,
    "ban_member": PERSON,
    "unban_member": PERSON,
    "assign_role": {**PERSON, "roleId": f"grol_{U}1"},
    "remove_role": {**PERSON, "roleId": f"grol_{U}1"},
    "publish_post": POST,
    "edit_post": {**POST, "postId": f"not_{U}1"},
    "delete_post": {"postId": f"not_{U}1"},
    "create_instance": {
        "worldId": f"wrld_{U}1",
        "access": "members",
        "region": "jp",
        "ageGated": True,
        "roleIds": [f"grol_{U}1"],
        "calendarEntryId": f"cal_{U}1",
        "queueEnabled": True,
    },
    "close_instance": {"worldId": f"wrld_{U}1", "instanceId": INSTANCE},
    "invite_to_instance": {
        "targetUserId": f"usr_{U}1",
        "worldId": f"wrld_{U}1",
        "instanceId": INSTANCE,
        "messageSlot": 11,
    },
    "invite_to_created_instance": {
        "targetUserId": f"usr_{U}1",
        "creationOperationId": "01jarvz3k4m5n6p7q8r9s0t1v2",
        "creationRevision": 1,
    },
}
"""A whole payload of each kind, with every field that it may have."""


def test_each_kind_is_one_file_on_both_sides() -> None:
    assert set(KINDS) == FILES == set(PAYLOADS)
    assert set(WRITES) == {kind.sent_as or kind.name for kind in KINDS.values()}


@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if kind.sent_as is None])
def test_both_sides_have_the_same_fields_shapes_grants_and_cost(name: str) -> None:
    here, there = KINDS[name], WRITES[name]
    ours = {field.encode_name: field for field in msgspec.structs.fields(here.payload)}
    theirs = {field.encode_name: field for field in msgspec.structs.fields(there.payload)}
    assert list(ours) == list(theirs) == list(PAYLOADS[name])
    for our, their in zip(ours.values(), theirs.values(), strict=True):
        assert (our.required, our.default) == (their.required, their.default)
        assert _accepted(our.type) == _accepted(their.type)
    payload = PAYLOADS[name]
    assert here.grants_for(here.parse(payload, "payload")) == there.grants_for(there.read(payload))
    assert (here.grants, here.cost, here.is_protective) == (there.grants, there.cost, there.is_protective)
    assert here.feature == there.feature


@pytest.mark.parametrize("name", list(KINDS))
def test_a_kind_says_in_words_what_it_does(name: str) -> None:
    kind = KINDS[name]
    assert all((kind.words.label, kind.words.verb, kind.words.plural))
    stored = msgspec.json.decode(msgspec.json.encode(fields_of(kind.parse(PAYLOADS[name], "payload"))))
    assert stored == PAYLOADS[name]
    assert target_user_id(stored) or title(stored)


@pytest.mark.clause("ENQ-04")
def test_several_at_once_are_invitations_decisions_on_requests_and_role_changes_only() -> None:
    invitations = {"invite_member", "invite_to_instance", "invite_to_created_instance"}
    decisions, roles = {"approve_request", "reject_request"}, {"assign_role", "remove_role"}
    bulk = {kind.name for kind in KINDS.values() if kind.is_bulk}
    assert bulk == (invitations | decisions | roles) & set(KINDS)
    assert {kind.name for kind in KINDS.values() if kind.is_urgent} == {
        "ban_member",
        "remove_member",
        "close_instance",
    } & set(KINDS)
    assert not any(kind.is_bulk and kind.is_urgent for kind in KINDS.values())


PROBLEMS = [
    ("publish_post", {"visibility": "public"}, "payload.visibility", "must have the visibility group"),
    ("edit_post", {"visibility": "public"}, "payload.visibility", "must have the visibility group"),
    ("publish_post", {"visibility": "friends"}, "payload.visibility", "public or group"),
    (
        "publish_post",
        {"roleIds": [f"grol_{U}a", f"grol_{U.upper()}A"]},
        "payload.roleIds",
        "names a role twice",
    ),
    ("publish_post", {"roleIds": [f"usr_{U}1"]}, "payload.roleIds", "VRChat role ids"),
    ("publish_post", {"title": ""}, "payload.title", "1 to 200 characters"),
    ("publish_post", {"title": "x" * 201}, "payload.title", "1 to 200 characters"),
    ("publish_post", {"text": "bell\x07"}, "payload.text", "without control characters"),
    ("publish_post", {"imageId": None, "sendNotification": 1}, "payload.sendNotification", "true or false"),
    ("delete_post", {"postId": f"post_{U}1"}, "payload.postId", "the id of a VRChat post"),
    ("delete_post", {"title": "x"}, "payload.title", "no field of this kind"),
    ("remove_role", {"roleId": f"role_{U}1"}, "payload.roleId", "a VRChat role id"),
]


@pytest.mark.parametrize(("name", "change", "field", "sentence"), PROBLEMS)
def test_a_payload_that_breaks_a_rule_is_refused_with_the_field_to_change(
    name: str, change: dict[str, object], field: str, sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence) as refusal:
        KINDS[name].parse(PAYLOADS[name] | change, "payload")
    assert refusal.value.field == field


def test_what_is_left_open_is_not_stored_and_a_long_target_is_hashed() -> None:
    kind = KINDS["publish_post"]
    bare = {name: value for name, value in POST.items() if name not in ("imageId", "roleIds")}
    assert fields_of(kind.parse(bare | {"imageId": None, "roleIds": []}, "payload")) == bare
    long, other = (kind.parse(bare | {"text": "x" * count}, "payload") for count in (10_000, 9_999))
    assert len(kind.target(long)) == 64
    assert kind.target(long) != kind.target(other)


SAMPLES = (
    *(f"{prefix}_{U}1" for prefix in ("usr", "grol", "wrld", "not", "cal", "file", "gmem")),
    "usr_ABCDEF00-0000-4000-8000-00000000000f",
    f"usr_{U}1\n",
    f"not_{U}1/..",
    "usr_00000000-0000-4000-8000-00000000000g",
    "8JoV9XEdpo",
    f"../usr_{U}1",
    "",
    *("public", "group", "members", "plus", "us", "use", "eu", "jp", "everybody"),
    INSTANCE,
    "1~group(grp_x)~group(grp_x)",
    "1~group(grp_x)~groupAccessType(plus)",
    "1~group()",
    "1~hidden(~group(grp_x))",
    "1~region(jp)",
    *(f"1{character}2~group(grp_x)" for character in ": /?#\\%\n\x00\xa0"),
    "1~group(grp_x)" + "~a" * 243,
    "1~group(grp_x)" + "~a" * 244,
    "Tab\tand\nend",
    "bell\x07",
    "\x85",
    "x" * 200,
    "x" * 201,
    "x" * 10_000,
    "x" * 10_001,
    *(True, False, None, 0, 11, 12, -1, 1.5),
    [],
    [f"grol_{U}1"],
    [f"grol_{U}1"] * 100,
    [f"grol_{U}1"] * 101,
    [f"usr_{U}1"],
    {},
)


def _accepted(shape: object) -> list[bool]:
    found = []
    for sample in SAMPLES:
        try:
            msgspec.convert(sample, shape)
        except msgspec.ValidationError:
            found.append(False)
        else:
            found.append(True)
    return found


@pytest.mark.clause("ENQ-13")
@pytest.mark.parametrize(
    ("field", "spelling", "is_same"),
    [
        ("targetUserId", f"usr_{U}A", False),
        ("worldId", f"wrld_{U}A", True),
        ("worldId", f"wrld_{U}B", False),
        ("instanceId", f"12345~group(grp_{U}1)~ageGate~region(jp)", True),
        ("instanceId", f"12345~region(jp)~group(GRP_{U}1)~agegate", True),
        ("instanceId", f"12346~region(jp)~group(grp_{U}1)~ageGate", False),
    ],
)
def test_one_person_is_not_invited_twice_to_an_instance_that_is_written_differently(
    field: str, spelling: str, is_same: bool
) -> None:
    kind = KINDS["invite_to_instance"]
    fields = {**PERSON, "worldId": f"wrld_{U}a", "instanceId": INSTANCE}
    one, other = (kind.parse({**fields, **how}, "payload") for how in ({}, {field: spelling}))
    assert (kind.target(one) == kind.target(other)) is is_same
