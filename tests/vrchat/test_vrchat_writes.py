"""What is written for each kind, and what forbids it. The answers are in ``test_vrchat_answers.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
from write_samples import (
    BOT,
    EVIDENCE,
    GROUP,
    OWNER,
    PAYLOADS,
    POST,
    POST_ID,
    ROLE,
    TARGET,
    U,
    plan,
    planned,
)

from lastcall.vrchat import errors
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.writes import write_kind

PAGE = Path(__file__).parents[2] / "docs/explanation/vrchat.md"
POST_BODY = POST | {"roleIds": [ROLE]}
REQUESTS = {
    "approve_request": ("PUT", f"requests/{TARGET}", {"action": "accept"}),
    "reject_request": ("PUT", f"requests/{TARGET}", {"action": "reject"}),
    "invite_member": ("POST", "invites", {"userId": TARGET, "confirmOverrideBlock": False}),
    "cancel_member_invite": ("DELETE", f"invites/{TARGET}", None),
    "remove_member": ("DELETE", f"members/{TARGET}", None),
    "ban_member": ("POST", "bans", {"userId": TARGET}),
    "unban_member": ("DELETE", f"bans/{TARGET}", None),
    "assign_role": ("PUT", f"members/{TARGET}/roles/{ROLE}", None),
    "remove_role": ("DELETE", f"members/{TARGET}/roles/{ROLE}", None),
    "publish_post": ("POST", "posts", POST_BODY),
    "edit_post": ("PUT", f"posts/{POST_ID}", POST_BODY),
    "delete_post": ("DELETE", f"posts/{POST_ID}", None),
}


@pytest.mark.parametrize("kind", PAYLOADS)
def test_the_one_write_of_each_kind_is_exactly_this(kind: str) -> None:
    method, path, body = REQUESTS[kind]
    write = planned(kind)
    assert (write.method, write.path, write.json) == (method, f"/groups/{GROUP}/{path}", body)
    assert write_kind(kind).cost == 2


PLACES = {GROUP: "{group}", TARGET: "{user}", ROLE: "{role}", POST_ID: "{post}"}


@pytest.mark.parametrize("kind", PAYLOADS)
def test_the_page_on_vrchat_says_what_is_sent_and_what_it_takes(kind: str) -> None:
    write, path = planned(kind), planned(kind).path
    for value, place in PLACES.items():
        path = path.replace(value, place)
    grants = ", ".join(f"`{grant}`" for grant in write_kind(kind).grants)
    (row,) = (
        line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{kind}` | `{write.method} ")
    )
    assert row.startswith(f"| `{kind}` | `{write.method} {path}`")
    assert row.endswith(f" | {grants} |")


@pytest.mark.parametrize("kind", ["publish_post", "edit_post"])
def test_what_a_post_leaves_open_is_named_in_its_write(kind: str) -> None:
    bare = {name: value for name, value in PAYLOADS[kind].items() if name not in ("imageId", "roleIds")}
    write = plan(kind, bare)
    assert write.json is not None
    assert (write.json["imageId"], write.json["roleIds"]) == (None, [])


@pytest.mark.parametrize("kind", ["publish_post", "edit_post"])
@pytest.mark.parametrize(
    "change",
    [
        {"visibility": "public"},
        {"visibility": "friends"},
        {"roleIds": [ROLE, ROLE.upper().replace("GROL", "grol")]},
        {"roleIds": [f"grol_{U}{n:02d}" for n in range(101)]},
        {"title": ""},
        {"title": "x" * 201},
        {"text": "x" * 10_001},
        {"text": "bell\x07"},
        {"sendNotification": "yes"},
        {"imageId": "file_1"},
    ],
)
def test_a_post_that_breaks_a_rule_is_refused_before_anything_is_asked(
    kind: str, change: dict[str, object]
) -> None:
    with pytest.raises(errors.InvalidInput):
        write_kind(kind).read(PAYLOADS[kind] | change)


@pytest.mark.parametrize("kind", ["publish_post", "edit_post"])
def test_each_role_of_a_post_must_be_the_groups(kind: str) -> None:
    with pytest.raises(errors.RoleScope):
        plan(kind, PAYLOADS[kind] | {"roleIds": [ROLE, f"grol_{U}b"]})


@pytest.mark.parametrize("kind", ["assign_role", "remove_role"])
def test_a_role_is_named_as_vrchat_writes_it_and_must_be_the_groups(kind: str) -> None:
    assert planned(kind).path.endswith(f"/{ROLE}")
    with pytest.raises(errors.RoleScope):
        plan(kind, {"targetUserId": TARGET, "roleId": f"grol_{U}b"})


PROTECTIVE = ("assign_role", "remove_role", "remove_member", "ban_member", "unban_member")


@pytest.mark.parametrize("kind", PROTECTIVE)
@pytest.mark.parametrize("target", [OWNER, BOT, "usr_" + OWNER.removeprefix("usr_").upper()])
def test_the_owner_and_the_account_itself_are_out_of_reach(kind: str, target: str) -> None:
    with pytest.raises(errors.ProtectedTarget):
        plan(kind, PAYLOADS[kind] | {"targetUserId": target}, EVIDENCE)


@pytest.mark.parametrize(
    ("kind", "grant"), [(kind, grant) for kind in PAYLOADS for grant in write_kind(kind).grants]
)
def test_every_grant_of_a_kind_is_needed(kind: str, grant: str) -> None:
    enough = frozenset(write_kind(kind).grants)
    plan(kind, PAYLOADS[kind], with_permissions(enough))
    with pytest.raises(errors.ProviderPermissions):
        plan(kind, PAYLOADS[kind], with_permissions(enough - {grant}))


def with_permissions(permissions: frozenset[str]) -> OwnMember:
    fields = {name: getattr(EVIDENCE, name) for name in OwnMember.__dataclass_fields__}
    return OwnMember(**fields | {"permissions": permissions})


@pytest.mark.parametrize("kind", [kind for kind in PAYLOADS if "targetUserId" in PAYLOADS[kind]])
@pytest.mark.parametrize(
    "change",
    [
        {"targetUserId": "usr_1"},
        {"targetUserId": TARGET + "\n"},
        {"targetUserId": TARGET + "/../x"},
        {"targetUserId": "8JoV9XEdpo"},
        {"targetUserId": None},
        {"extra": 1},
    ],
)
def test_a_payload_that_does_not_fit_its_kind_is_refused(kind: str, change: dict[str, object]) -> None:
    with pytest.raises(errors.InvalidInput):
        plan(kind, PAYLOADS[kind] | change, EVIDENCE)


def test_an_unknown_kind_says_what_to_do() -> None:
    with pytest.raises(errors.UnsupportedOperation) as caught:
        write_kind("dance")
    assert "release" in caught.value.advice
