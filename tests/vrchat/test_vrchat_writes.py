"""Each kind's plan and each row of its answer table."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat import errors
from lastcall.vrchat.evidence import OwnMember, Role
from lastcall.vrchat.transport import Answer, NoAnswer, NotSent, SendResult
from lastcall.vrchat.writes import WRITES, AnswerCode, Seen, Write, write_kind

U = "00000000-0000-4000-8000-00000000000"
GROUP, OWNER, BOT, TARGET = f"grp_{U}1", f"usr_{U}2", f"usr_{U}3", f"usr_{U}4"
ROLE = "grol_00000000-0000-4000-8000-00000000000a"
EVIDENCE = OwnMember(
    group_id=GROUP,
    owner_id=OWNER,
    user_id=BOT,
    member_status="member",
    permissions=frozenset({"*"}),
    role_ids=(),
    roles=(Role(ROLE, "Regular"),),
    privacy="default",
    join_state="request",
    asked_at=0.0,
)
PAYLOADS = {
    "assign_role": {"targetUserId": TARGET, "roleId": ROLE.upper().replace("GROL", "grol")},
    "invite_member": {"targetUserId": TARGET},
    "ban_member": {"targetUserId": TARGET},
}
GOOD_BODIES = {
    "assign_role": msgspec.json.encode([ROLE]),
    "invite_member": b'{"success":{"message":"Invite sent","status_code":200}}',
    "ban_member": msgspec.json.encode({"id": f"gmem_{U}5", "groupId": GROUP, "userId": TARGET}),
}


def plan(kind: str, payload: object, own: OwnMember = EVIDENCE) -> Write:
    chosen = write_kind(kind)
    return chosen.plan(chosen.read(payload), Seen(own))


def planned(kind: str) -> Write:
    return plan(kind, PAYLOADS[kind])


def judged(kind: str, sent: SendResult) -> tuple[Outcome, str | None]:
    judgement = write_kind(kind).judge(planned(kind), sent)
    return judgement.outcome, judgement.code


def nested(status: int, message: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "status_code": status}})


def flat(status: int, message: str) -> bytes:
    return msgspec.json.encode({"message": message, "statusCode": status})


# --------------------------------------------------------------------------------------------------- the plan


def test_the_write_of_each_kind_is_exactly_this() -> None:
    role, invitation, ban = (planned(kind) for kind in PAYLOADS)
    assert (role.method, role.path, role.json) == (
        "PUT",
        f"/groups/{GROUP}/members/{TARGET}/roles/{ROLE}",
        None,
    )
    assert (invitation.method, invitation.path) == ("POST", f"/groups/{GROUP}/invites")
    assert invitation.json == {"userId": TARGET, "confirmOverrideBlock": False}
    assert (ban.method, ban.path, ban.json) == ("POST", f"/groups/{GROUP}/bans", {"userId": TARGET})
    assert {kind.cost for kind in WRITES.values()} == {2}


def test_a_role_is_named_as_vrchat_writes_it_and_must_be_the_groups() -> None:
    assert planned("assign_role").path.endswith(f"/{ROLE}")
    other = {"targetUserId": TARGET, "roleId": f"grol_{U}b"}
    with pytest.raises(errors.RoleScope):
        plan("assign_role", other, EVIDENCE)


@pytest.mark.parametrize("kind", ["assign_role", "ban_member"])
@pytest.mark.parametrize("target", [OWNER, BOT, "usr_" + OWNER.removeprefix("usr_").upper()])
def test_the_owner_and_the_account_itself_are_out_of_reach(kind: str, target: str) -> None:
    with pytest.raises(errors.ProtectedTarget):
        plan(kind, PAYLOADS[kind] | {"targetUserId": target}, EVIDENCE)


@pytest.mark.parametrize(
    ("kind", "grant"), [(kind.name, grant) for kind in WRITES.values() for grant in kind.grants]
)
def test_every_grant_of_a_kind_is_needed(kind: str, grant: str) -> None:
    enough = frozenset(write_kind(kind).grants)
    plan(kind, PAYLOADS[kind], with_permissions(enough))
    with pytest.raises(errors.ProviderPermissions):
        plan(kind, PAYLOADS[kind], with_permissions(enough - {grant}))


def with_permissions(permissions: frozenset[str]) -> OwnMember:
    fields = {name: getattr(EVIDENCE, name) for name in OwnMember.__dataclass_fields__}
    return OwnMember(**fields | {"permissions": permissions})


@pytest.mark.parametrize("kind", PAYLOADS)
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


# -------------------------------------------------------------------------------------------- the judgement


@pytest.mark.parametrize("kind", PAYLOADS)
def test_a_valid_body_of_the_kind_is_success(kind: str) -> None:
    assert judged(kind, Answer(200, GOOD_BODIES[kind])) == (Outcome.SUCCEEDED, None)


DOUBTFUL_BODIES = [
    ("assign_role", b"[]", Code.PROVIDER_SCOPE),
    ("assign_role", msgspec.json.encode([f"grol_{U}b"]), Code.PROVIDER_SCOPE),
    ("assign_role", b"[1]", Code.SCHEMA_DRIFT),
    ("assign_role", b"null", Code.SCHEMA_DRIFT),
    ("assign_role", b"", Code.SCHEMA_DRIFT),
    ("assign_role", nested(200, "no"), Code.SCHEMA_DRIFT),
    ("invite_member", b"null", Code.SCHEMA_DRIFT),
    ("invite_member", b"{}", Code.SCHEMA_DRIFT),
    ("invite_member", nested(200, "no"), Code.SCHEMA_DRIFT),
    ("invite_member", b'{"success":{"message":"Invite sent","status_code":403}}', Code.SCHEMA_DRIFT),
    ("ban_member", b"{}", Code.SCHEMA_DRIFT),
    ("ban_member", b"", Code.SCHEMA_DRIFT),
    ("ban_member", msgspec.json.encode({"id": U, "groupId": GROUP, "userId": TARGET}), Code.SCHEMA_DRIFT),
    (
        "ban_member",
        msgspec.json.encode({"id": f"gmem_{U}5", "groupId": GROUP, "userId": OWNER}),
        Code.PROVIDER_SCOPE,
    ),
    (
        "ban_member",
        msgspec.json.encode({"id": f"gmem_{U}5", "groupId": f"grp_{U}9", "userId": TARGET}),
        Code.PROVIDER_SCOPE,
    ),
]


@pytest.mark.clause("WRK-14")
@pytest.mark.parametrize(("kind", "body", "code"), DOUBTFUL_BODIES)
def test_a_2xx_that_does_not_prove_the_write_is_unknown(kind: str, body: bytes, code: Code) -> None:
    assert judged(kind, Answer(200, body)) == (Outcome.INDETERMINATE, code)


def test_an_empty_answer_to_an_invitation_counts_only_when_it_is_declared_to_be_empty() -> None:
    assert judged("invite_member", Answer(200, b"")) == (Outcome.SUCCEEDED, None)
    cut_off = Answer(200, b"", is_framed=False)
    assert judged("invite_member", cut_off) == (Outcome.INDETERMINATE, Code.SCHEMA_DRIFT)


REFUSALS = [
    (
        "invite_member",
        400,
        "User Member 3 is already a member of this group\u2024",
        AnswerCode.ALREADY_MEMBER,
    ),
    ("invite_member", 400, "User Member 3 is already a member of this group.", AnswerCode.ALREADY_MEMBER),
    ("invite_member", 400, '"User X is already invited\u2024"', AnswerCode.ALREADY_INVITED),
    (
        "invite_member",
        400,
        "User is already invited. is already a member of this group\u2024",
        AnswerCode.ALREADY_MEMBER,
    ),
    ("invite_member", 403, "You can't invite that user\u2024", AnswerCode.INVITATION_REFUSED),
    ("ban_member", 400, "User is already banned\u2024", AnswerCode.ALREADY_BANNED),
    *(
        (kind, status, message, code)
        for kind in PAYLOADS
        for status, message, code in (
            (400, "Something else", Code.PROVIDER_ERROR),
            (401, '"Missing Credentials"', Code.AUTHENTICATION),
            (403, "You're not a member\u2024", Code.MEMBERSHIP),
            (403, "You're not allowed to do that\u2024", Code.PROVIDER_PERMISSIONS),
            (404, "Can't find group\u01c3", Code.VISIBILITY),
            (409, "Busy", Code.PROVIDER_ERROR),
            (429, "Too many requests", Code.RATE_LIMIT),
        )
    ),
]


@pytest.mark.parametrize("envelope", [nested, flat])
@pytest.mark.parametrize(("kind", "status", "message", "code"), REFUSALS)
def test_a_refusal_in_vrchats_envelope_is_definite_and_has_its_own_code(
    kind: str, status: int, message: str, code: str, envelope: Callable[[int, str], bytes]
) -> None:
    assert judged(kind, Answer(status, envelope(status, message))) == (Outcome.REJECTED, code)


@pytest.mark.clause("WRK-14")
@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize(
    "sent",
    [
        Answer(403, b"<html>Forbidden</html>"),
        Answer(403, nested(400, "User is already banned.")),
        Answer(400, b'{"message":"No"}'),
        Answer(408, nested(408, "Timed out")),
        Answer(429, b"slow down"),
        Answer(500, nested(500, "Oops")),
        Answer(503, flat(503, "Busy")),
        Answer(301, b""),
        Answer(307, nested(307, "Moved")),
        Answer(200, b"\x00\x1f<<upstream>>"),
        Answer(200, b"<html></html>"),
        NoAnswer(Code.TIMEOUT, ""),
        NoAnswer(Code.NETWORK, ""),
    ],
    ids=repr,
)
def test_whatever_is_no_clear_answer_of_vrchats_is_unknown(kind: str, sent: SendResult) -> None:
    outcome, code = judged(kind, sent)
    assert outcome is Outcome.INDETERMINATE
    assert code is not None


@pytest.mark.parametrize("kind", PAYLOADS)
def test_a_write_that_never_left_is_not_attempted(kind: str) -> None:
    assert judged(kind, NotSent(Code.NETWORK, "")) == (Outcome.REJECTED, Code.NOT_ATTEMPTED)


@pytest.mark.parametrize("body", [flat(429, "Too many requests"), b"<html>"], ids=["envelope", "proxy"])
def test_any_429_stops_the_account_for_its_time(body: bytes) -> None:
    judgement = write_kind("ban_member").judge(planned("ban_member"), Answer(429, body, retry_after=86_400.0))
    assert judgement.fault is not None
    assert judgement.fault.stops_account
    assert judgement.fault.retry_after == 86_400.0


@pytest.mark.clause("WRK-14")
@given(
    kind=st.sampled_from(list(PAYLOADS)),
    status=st.integers(200, 599),
    body=st.binary(min_size=1) | st.text(min_size=1).map(str.encode),
    is_framed=st.booleans(),
)
def test_random_bytes_never_settle_anything(kind: str, status: int, body: bytes, is_framed: bool) -> None:
    outcome, _ = judged(kind, Answer(status, body, is_framed=is_framed))
    assert outcome is Outcome.INDETERMINATE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "success", "id", "userId"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(kind=st.sampled_from(list(PAYLOADS)), status=st.integers(200, 599), document=JSON)
def test_random_json_without_a_status_of_its_own_never_settles_anything(
    kind: str, status: int, document: object
) -> None:
    outcome, _ = judged(kind, Answer(status, msgspec.json.encode(document)))
    assert outcome is Outcome.INDETERMINATE
