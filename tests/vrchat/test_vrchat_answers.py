"""Each row of the answer tables, and that nothing else settles a write."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from write_samples import (
    GOOD_BODIES,
    GROUP,
    MAY_BE_EMPTY,
    OWNER,
    PAYLOADS,
    POST_ID,
    POSTED,
    ROLE,
    SUCCESS,
    TARGET,
    U,
    flat,
    judged,
    nested,
    planned,
)

from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat.transport import Answer, NoAnswer, NotSent, SendResult
from lastcall.vrchat.writes import AnswerCode, write_kind


@pytest.mark.parametrize("kind", PAYLOADS)
def test_a_valid_body_of_the_kind_is_success(kind: str) -> None:
    assert judged(kind, Answer(200, GOOD_BODIES[kind])) == (Outcome.SUCCEEDED, None)


NO_SUCCESS = [
    (b"null", Code.SCHEMA_DRIFT),
    (b"{}", Code.SCHEMA_DRIFT),
    (nested(200, "no"), Code.SCHEMA_DRIFT),
    (b'{"success":{"message":"Done","status_code":403}}', Code.SCHEMA_DRIFT),
]
NO_STANDING = [
    (b"{}", Code.SCHEMA_DRIFT),
    (b"", Code.SCHEMA_DRIFT),
    (msgspec.json.encode({"id": U, "groupId": GROUP, "userId": TARGET}), Code.SCHEMA_DRIFT),
    (msgspec.json.encode({"id": f"gmem_{U}5", "groupId": GROUP, "userId": OWNER}), Code.PROVIDER_SCOPE),
    (
        msgspec.json.encode({"id": f"gmem_{U}5", "groupId": f"grp_{U}9", "userId": TARGET}),
        Code.PROVIDER_SCOPE,
    ),
]
NO_ROLES = [
    (b"[1]", Code.SCHEMA_DRIFT),
    (b'["Regular"]', Code.SCHEMA_DRIFT),
    (b"null", Code.SCHEMA_DRIFT),
    (b"", Code.SCHEMA_DRIFT),
    (nested(200, "no"), Code.SCHEMA_DRIFT),
]


def posted(**changes: object) -> bytes:
    return msgspec.json.encode(
        {"id": POST_ID, "groupId": GROUP, "title": "Tonight", "text": "Doors"} | changes
    )


NO_POST = [
    (b"null", Code.SCHEMA_DRIFT),
    (b"", Code.SCHEMA_DRIFT),
    (SUCCESS, Code.SCHEMA_DRIFT),
    (posted(id="post_1"), Code.SCHEMA_DRIFT),
    (posted(title=""), Code.SCHEMA_DRIFT),
    (posted(text=None), Code.SCHEMA_DRIFT),
    (posted(groupId=f"grp_{U}9"), Code.PROVIDER_SCOPE),
]
DOUBTFUL_BODIES = [
    *(
        (kind, body, code)
        for kinds, bodies in (
            ((*MAY_BE_EMPTY, "cancel_member_invite", "remove_member", "delete_post"), NO_SUCCESS),
            (("ban_member", "unban_member"), NO_STANDING),
            (("assign_role", "remove_role"), NO_ROLES),
            (("publish_post", "edit_post"), NO_POST),
        )
        for kind in kinds
        for body, code in bodies
    ),
    ("assign_role", b"[]", Code.PROVIDER_SCOPE),
    ("assign_role", msgspec.json.encode([f"grol_{U}b"]), Code.PROVIDER_SCOPE),
    ("remove_role", msgspec.json.encode([ROLE]), Code.PROVIDER_SCOPE),
    ("remove_role", msgspec.json.encode([ROLE.upper().replace("GROL", "grol")]), Code.PROVIDER_SCOPE),
    ("edit_post", posted(id=f"not_{U}9"), Code.PROVIDER_SCOPE),
    ("cancel_member_invite", b"", Code.SCHEMA_DRIFT),
    ("remove_member", b"", Code.SCHEMA_DRIFT),
    ("delete_post", b"", Code.SCHEMA_DRIFT),
]


@pytest.mark.clause("WRK-14")
@pytest.mark.parametrize(("kind", "body", "code"), DOUBTFUL_BODIES)
def test_a_2xx_that_does_not_prove_the_write_is_unknown(kind: str, body: bytes, code: Code) -> None:
    assert judged(kind, Answer(200, body)) == (Outcome.INDETERMINATE, code)


@pytest.mark.parametrize("kind", MAY_BE_EMPTY)
def test_an_empty_answer_counts_only_where_it_is_usual_and_declared_to_be_empty(kind: str) -> None:
    assert judged(kind, Answer(200, b"")) == (Outcome.SUCCEEDED, None)
    cut_off = Answer(200, b"", is_framed=False)
    assert judged(kind, cut_off) == (Outcome.INDETERMINATE, Code.SCHEMA_DRIFT)


@pytest.mark.parametrize("kind", ["publish_post", "edit_post"])
def test_the_id_of_a_post_is_kept_with_the_outcome(kind: str) -> None:
    assert write_kind(kind).judge(planned(kind), Answer(200, POSTED)).result == {"postId": POST_ID}


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
    ("unban_member", 400, "User is not banned\u2024", AnswerCode.NOT_BANNED),
    ("unban_member", 400, "User Visitor 1 isn\u2019t banned.", AnswerCode.NOT_BANNED),
    (
        "cancel_member_invite",
        400,
        "You can't uninvite a user who wasn't invited\u2024",
        AnswerCode.NOT_INVITED,
    ),
    *(
        (kind, 400, message, code)
        for kind in ("approve_request", "reject_request")
        for message, code in (
            (
                "You can't accept a join request for a user who hasn't requested to join\u2024",
                AnswerCode.NO_JOIN_REQUEST,
            ),
            ("User X\u01c3 is already a member of this group\u2024", AnswerCode.ALREADY_MEMBER),
        )
    ),
    *(
        (
            "approve_request",
            403,
            f"{name} can't join right now because they're in too many groups\u2024",
            code,
        )
        for code in (AnswerCode.TOO_MANY_GROUPS,)
        for name in ("Visitor 1", "You're not a member\u2024", '"', "line\nbreak")
    ),
    (
        "reject_request",
        403,
        "X can't join right now because they're in too many groups.",
        "provider_permissions",
    ),
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


@pytest.mark.parametrize("kind", ["edit_post", "delete_post"])
def test_a_post_that_is_gone_is_a_refusal_in_the_envelope_of_a_success(kind: str) -> None:
    gone = msgspec.json.encode({"success": {"message": "Gone", "status_code": 404}})
    assert judged(kind, Answer(404, gone)) == (Outcome.REJECTED, Code.VISIBILITY)
    assert judged(kind, Answer(404, SUCCESS)) == (Outcome.INDETERMINATE, Code.TRANSIENT)


@pytest.mark.parametrize(
    "message", ["X can't join right now because they're in too many groups.", "Anything"]
)
def test_a_refusal_about_the_person_says_nothing_about_the_account(message: str) -> None:
    judgement = write_kind("approve_request").judge(
        planned("approve_request"), Answer(403, nested(403, message))
    )
    assert judgement.outcome is Outcome.REJECTED
    assert judgement.fault is None


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
    assume((kind, document) != ("remove_role", []))  # who holds no role any more, not that one either
    outcome, _ = judged(kind, Answer(status, msgspec.json.encode(document)))
    assert outcome is Outcome.INDETERMINATE
