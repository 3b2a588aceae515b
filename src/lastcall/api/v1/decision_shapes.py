"""Approvals and decisions as the API shows them, and what it is sent about them; people and agents alike."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from msgspec import Meta

from lastcall.api.v1.shapes import Id, Input, Shape, spelled
from lastcall.db.cursor import cut
from lastcall.db.ids import encode_id
from lastcall.decisions.approvals import queries as approvals
from lastcall.decisions.approvals.asking import Ask, Carried, Subject
from lastcall.decisions.approvals.machine import Event, Status
from lastcall.decisions.approvals.rows import ApprovalNow
from lastcall.decisions.questions import queries as decisions
from lastcall.decisions.questions.asking import LIFE, DecisionNow, DecisionStatus, Option, Question

Key = Annotated[
    str | None,
    Meta(
        description="Your own name for this ask: sent again with the same content it is answered with what was made."
    ),
]
_MAY = {
    Event.APPROVE: "approve",
    Event.REJECT: "reject",
    Event.REQUEST_REVISION: "request-revision",
    Event.RESUBMIT: "resubmit",
    Event.WITHDRAW: "withdraw",
}


class Effect(Shape, frozen=True):
    """What approving does: `name` says which kind of thing, and only that kind understands `body`."""

    name: str
    body: dict[str, Any]


class About(Shape, frozen=True):
    """What an approval is about, in the words of whoever asked."""

    kind: str
    key: str


class Approval(Shape, frozen=True):
    """A question that somebody put to the staff. `requestedById` is a person's or an agent's; null where Lastcall
    itself asked. `may` is what you can do now.
    """

    id: Id
    type: str
    title: str
    body: str
    about: About | None
    effect: Effect | None
    result: dict[str, Any] | None
    status: Status
    revision: int
    requested_by_kind: str
    requested_by_id: str | None
    requested_by: str
    activity_at: datetime
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_note: str | None
    may: list[str]


class ApprovalPage(Shape, frozen=True):
    """The latest activity first. `next` is the cursor of the next page; null at the end."""

    items: list[Approval]
    next: str | None


class Comment(Shape, frozen=True):
    """Something that was said. `isRevisionRequest`: it says what is to be changed."""

    id: Id
    author: str
    is_agent: bool
    is_revision_request: bool
    body: str
    created_at: datetime


class EarlierRevision(Shape, frozen=True):
    """What an approval said before it was changed."""

    revision: int
    title: str
    body: str
    effect_body: dict[str, Any] | None
    replaced_at: datetime


class ApprovalStory(Shape, frozen=True):
    """An approval with what was said about it and what it said before."""

    approval: Approval
    comments: list[Comment]
    earlier: list[EarlierRevision]


class ApprovalState(Shape, frozen=True):
    """How an approval stands now."""

    id: Id
    status: Status
    revision: int


class NewEffect(Input, frozen=True):
    """What approving is to do: the name of an effect, such as `operations`, and its body."""

    name: str
    body: dict[str, Any]


class NewAbout(Input, frozen=True):
    """What it is about. `isOnlyOne`: no second approval of its type waits about this while it does."""

    kind: str
    key: str
    is_only_one: bool = False


class NewApproval(Input, frozen=True):
    """`type` is what sort of question it is, one word of small letters, digits and `_`."""

    type: str
    title: str
    body: str = ""
    about: NewAbout | None = None
    effect: NewEffect | None = None
    key: Key = None


class ChangedApproval(Input, frozen=True):
    """All of what it says, and the revision that you saw. Without `effectBody` it carries what it carried."""

    seen_revision: int
    title: str
    body: str = ""
    effect_body: dict[str, Any] | None = None


class NewComment(Input, frozen=True):
    """What you have to say."""

    body: str


class Choice(Shape, frozen=True):
    """One answer that can be chosen."""

    key: str
    label: str
    detail: str


class Decision(Shape, frozen=True):
    """A question with options. `option` is the key that was chosen. `mayDecide` and `mayCancel` are what you can do."""

    id: Id
    title: str
    body: str
    options: list[Choice]
    action: Effect | None
    result: dict[str, Any] | None
    status: DecisionStatus
    requested_by_kind: str
    requested_by_id: str | None
    requested_by: str
    created_at: datetime
    expires_at: datetime
    option: str | None
    decided_at: datetime | None
    decided_by: str | None
    decision_note: str | None
    may_decide: bool
    may_cancel: bool


class DecisionPage(Shape, frozen=True):
    """The latest first. `next` is the cursor of the next page; null at the end."""

    items: list[Decision]
    next: str | None


class DecisionState(Shape, frozen=True):
    """How a decision stands now."""

    id: Id
    status: DecisionStatus
    option: str | None


class NewChoice(Input, frozen=True):
    """One answer that can be chosen: a key of small letters, digits and `_`, what people read, and what it means."""

    key: str
    label: str
    detail: str = ""


class NewDecision(Input, frozen=True):
    """2 to 10 options. `expiresIn` is in seconds, 7 days unless said, 30 at most."""

    title: str
    options: list[NewChoice]
    body: str = ""
    expires_in: Annotated[int, Meta(ge=300, le=2_592_000)] = int(LIFE.total_seconds())
    key: Key = None


class Made(Shape, frozen=True):
    """The id of what was made."""

    id: Id


def ask_of(data: NewApproval) -> Ask:
    """What is asked, as the service takes it."""
    return Ask(
        type=data.type,
        title=data.title,
        body=data.body,
        subject=None
        if data.about is None
        else Subject(data.about.kind, data.about.key, is_only_one=data.about.is_only_one),
        effect=None if data.effect is None else Carried(data.effect.name, data.effect.body),
    )


def question_of(data: NewDecision) -> Question:
    """What is asked, as the service takes it."""
    return Question(
        title=data.title,
        options=[Option(one.key, one.label, one.detail) for one in data.options],
        body=data.body,
        life=timedelta(seconds=data.expires_in),
    )


def approval_shape(view: approvals.ApprovalView) -> Approval:
    """An approval as the API shows it."""
    return Approval(
        id=encode_id(view.id),
        type=view.type,
        title=view.title,
        body=view.body,
        about=None
        if view.subject_kind is None or view.subject_key is None
        else About(kind=view.subject_kind, key=view.subject_key),
        effect=None
        if view.effect_name is None
        else Effect(name=view.effect_name, body=dict(view.effect_body or {})),
        result=None if view.effect_result is None else dict(view.effect_result),
        status=view.status,
        revision=view.revision,
        requested_by_kind=view.requested_by_kind,
        requested_by_id=spelled(view.requested_by_id),
        requested_by=view.asker,
        activity_at=view.activity_at,
        created_at=view.created_at,
        decided_at=view.decided_at,
        decided_by=view.decided_by,
        decision_note=view.decision_note,
        may=[
            *(word for event, word in _MAY.items() if event in view.may),
            *(["comment"] if view.may_comment else []),
        ],
    )


def approval_page(found: Sequence[approvals.ApprovalView], limit: int) -> ApprovalPage:
    """A page, of one row more than its ``limit``."""
    shown, behind = cut(found, limit, approvals.LISTING, lambda one: one.cursor)
    return ApprovalPage(items=[approval_shape(one) for one in shown], next=behind)


def story_shape(story: approvals.Story) -> ApprovalStory:
    """An approval with all that belongs to it."""
    return ApprovalStory(
        approval=approval_shape(story.approval),
        comments=[
            Comment(
                id=encode_id(one.id),
                author=one.author,
                is_agent=one.is_agent,
                is_revision_request=one.is_revision_request,
                body=one.body,
                created_at=one.created_at,
            )
            for one in story.comments
        ],
        earlier=[
            EarlierRevision(
                revision=one.revision,
                title=one.title,
                body=one.body,
                effect_body=None if one.effect_body is None else dict(one.effect_body),
                replaced_at=one.replaced_at,
            )
            for one in story.revisions
        ],
    )


def approval_now(now: ApprovalNow) -> ApprovalState:
    """How an approval stands, beside a refusal."""
    return ApprovalState(id=encode_id(now.id), status=now.status, revision=now.revision)


def decision_shape(view: decisions.DecisionView) -> Decision:
    """A decision as the API shows it."""
    return Decision(
        id=encode_id(view.id),
        title=view.title,
        body=view.body,
        options=[Choice(key=one.key, label=one.label, detail=one.detail) for one in view.options],
        action=None
        if view.action_name is None
        else Effect(name=view.action_name, body=dict(view.action_body or {})),
        result=None if view.action_result is None else dict(view.action_result),
        status=view.status,
        requested_by_kind=view.requested_by_kind,
        requested_by_id=spelled(view.requested_by_id),
        requested_by=view.asker,
        created_at=view.created_at,
        expires_at=view.expires_at,
        option=view.decided_option,
        decided_at=view.decided_at,
        decided_by=view.decided_by,
        decision_note=view.decision_note,
        may_decide=view.may_decide,
        may_cancel=view.may_cancel,
    )


def decision_page(found: Sequence[decisions.DecisionView], limit: int) -> DecisionPage:
    """A page, of one row more than its ``limit``."""
    shown, behind = cut(found, limit, decisions.LISTING, lambda one: one.cursor)
    return DecisionPage(items=[decision_shape(one) for one in shown], next=behind)


def decision_now(now: DecisionNow) -> DecisionState:
    """How a decision stands, beside a refusal."""
    return DecisionState(id=encode_id(now.id), status=now.status, option=now.option)
