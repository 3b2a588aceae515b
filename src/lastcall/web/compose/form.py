"""A form for a new action: read from what was sent, with everything that it offers and everything that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.errors import NotFound
from lastcall.operations.forecast import forecast
from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.schedules import Fixed, Immediate
from lastcall.operations.services.asked import permission_missing
from lastcall.web.access import Visitor
from lastcall.web.awaited import Awaited, look
from lastcall.web.club import ClubPage, club_page
from lastcall.web.compose.drafts import takes_drafts
from lastcall.web.compose.fields import Given, read_given
from lastcall.web.compose.filled import Filled
from lastcall.web.compose.options import Options, read_options
from lastcall.web.compose.queueing import banned_among
from lastcall.web.compose.review import Review
from lastcall.web.compose.timing import Timing, confirmed_timing, read_timing, read_when
from lastcall.web.room import Web


@dataclass(frozen=True)
class Form(Filled):
    """A form as it is shown: what it says, what is wrong, and what it offers."""

    page: ClubPage
    card: ConnectionCard | None
    kind: Kind[Any]
    given: Given
    timing: Timing
    options: Options
    draft: str = ""
    source_id: str = ""
    """The read whose list the people were chosen from; empty for people that were typed."""
    source: Awaited | None = None
    """That read as it stands now."""
    check: str = ""
    """The read that the review had made, if any."""


def kind_at(page: ClubPage, name: str) -> Kind[Any]:
    """The kind in the address. One that the person may not queue is refused, one that is none is unknown."""
    kind = KINDS.get(name)
    if kind is None:
        raise NotFound("not_found", "There is no such kind of action.")
    if not page.standing.holds(kind.permission):
        raise permission_missing(kind.permission)
    return kind


def stepped(fields: Mapping[str, str], step: str) -> Mapping[str, str]:
    """What a button of the review changes in the form that it sends again."""
    if step == "second":
        return {**fields, "second": "" if fields.get("second") else "yes"}
    if step == "leave_out":
        banned = fields.get("banned_all", "").split()
        lines = [line for line in fields.get("people", "").splitlines() if line.split(" ")[0] not in banned]
        return {**fields, "people": "\n".join(lines)}
    if step == "earlier":
        return {
            **fields,
            **{name: fields.get(f"earlier_{name}", "") for name in ("when", "at", "minutes", "side")},
        }
    return fields


async def read_form(
    web: Web,
    visitor: Visitor,
    slug: str,
    kind_name: str,
    fields: Mapping[str, str],
    *,
    reviewed: str | None = None,
) -> Form:
    """``reviewed`` is the due time that a confirmation names, None at the review."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        kind = kind_at(page, kind_name)
        card = await connection_card(tx, page.club.id)
        given = read_given(kind, fields)
        when = read_when(fields)
        options = await read_options(tx, page, visitor.actor, kind, card, when.event)
        if reviewed is None:
            timing = await read_timing(tx, page.standing, page.club.id, when, page.now)
        else:
            timing = await confirmed_timing(tx, page.standing, page.club.id, when, reviewed)
        read_id = fields.get("read", "")
        source = await look(tx, web, visitor, page, card, read_id) if read_id else None
    if reviewed is None and isinstance(timing.schedule, Immediate):
        creation = options.creation(given.values.get("creation", ""))
        if creation and creation.due_at > page.now:
            # Nobody is invited before the instance is there: now means when it is due.
            fixed = Fixed(creation.due_at, timing.schedule.event_id)
            timing = replace(timing, schedule=fixed, due_at=creation.due_at)
    draft = fields.get("draft", "") if takes_drafts(kind) else ""
    check = fields.get("check", "")
    return Form(page, card, kind, given, timing, options, draft, read_id, source, check)


def with_list(form: Form, list_id: str) -> Form:
    """The people of a recipient list, added to those who are named already."""
    found = next((one for one in form.options.lists if encode_id(one.id) == list_id), None)
    if found is None:
        return form
    text = form.given.values.get("people", "")
    known = text.lower()
    added = "\n".join(user_id for user_id in found.user_ids if user_id not in known)
    people = "\n".join(part for part in (text, added) if part)
    return replace(form, given=replace(form.given, values={**form.given.values, "people": people}))


async def review_of(web: Web, form: Form, request_key: str) -> Review:
    people = [person.user_id for person in form.given.recipients.people]
    async with web.database.read() as tx:
        planned = await forecast(
            tx, form.page.standing, form.page.club.id, form.kind, max(len(people), 1), form.timing.due_at
        )
        banned = await banned_among(tx, form.page.club.id, form.card, form.page.now, form.kind, people)
    return Review(
        request_key,
        form.kind,
        form.given,
        form.timing,
        planned,
        banned=banned,
        draft=form.draft,
        read=form.source_id,
        check=form.check,
    )
