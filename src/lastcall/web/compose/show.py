"""The pages of a new action: its form, and the review of it."""

from __future__ import annotations

from litestar import Response

from lastcall.errors import LastcallError, Unavailable
from lastcall.reads.signals import TOPIC as READS
from lastcall.web.awaited import nonce_of
from lastcall.web.compose.checks import checked
from lastcall.web.compose.drafts import takes_drafts
from lastcall.web.compose.fields import fields_for, is_required
from lastcall.web.compose.form import Form
from lastcall.web.compose.review import Review
from lastcall.web.compose.timing import local_text
from lastcall.web.looks import KINDS as LOOKS
from lastcall.web.looks import obstacle
from lastcall.web.members.where import where_read
from lastcall.web.pages import PageRequest
from lastcall.web.room import Web, provide_visitor
from lastcall.web.times import MINUTE, Zoned


def show_form(
    request: PageRequest, web: Web, form: Form, *, status: int = 200, refused: LastcallError | None = None
) -> Response[str]:
    return web.pages.show(
        request,
        "compose.html",
        form.page.place("new"),
        form.page.now,
        status=status,
        form=form,
        kind=form.kind,
        look=LOOKS[form.kind.name],
        fields=fields_for(form.kind),
        required={one.name for one in fields_for(form.kind) if is_required(form.kind, one)},
        refused=refused,
        takes_drafts=takes_drafts(form.kind),
        connection=form.card,
        obstacle=obstacle(form.card.obstacle) if form.card else None,
    )


async def show_review(
    request: PageRequest,
    web: Web,
    form: Form,
    made: Review,
    *,
    refused: LastcallError | None = None,
    unasked: LastcallError | None = None,
) -> Response[str]:
    """``unasked``: why what the visitor wanted to have looked up could not be asked."""
    page = form.page
    visitor = provide_visitor(request)
    reads_seen = web.live.mark((page.club.id, READS))
    async with web.database.read() as tx:
        check = await checked(tx, web, visitor, form, made.check, unasked)
    zoned = Zoned(web.pages.zone(request, page.place("new")), page.now)
    return web.pages.show(
        request,
        "review.html",
        page.place("new"),
        page.now,
        status=refused.status if refused else 200,
        kind=made.kind,
        look=LOOKS[made.kind.name],
        review=made,
        form=form,
        fields=[one for one in fields_for(form.kind) if one.widget != "people"],
        earlier=_earlier(made, zoned),
        refused=refused,
        may_repeat=isinstance(refused, Unavailable),
        check=check,
        awaited=check and check.awaited,
        reads_seen=reads_seen,
        nonce=nonce_of(request),
        source=form.source,
        source_back=_way_back(form),
    )


def _way_back(form: Form) -> str:
    """The list that the people were chosen from, with them ticked; it reads anew."""
    read = None if form.source is None else form.source.read
    where = (
        None if read is None else where_read(read, tuple(one.user_id for one in form.given.recipients.people))
    )
    return form.page.path("members") if where is None else where.address(form.page)


def _earlier(made: Review, zoned: Zoned) -> dict[str, str]:
    """The form's part about the time, if it began so much earlier that nobody is missed."""
    if made.forecast is None or made.forecast.earlier_start is None:
        return {}
    start = made.forecast.earlier_start
    when = made.timing.when
    event = made.timing.event
    if when.when == "event" and event is not None and event.starts_at is not None:
        minutes = (start - event.starts_at) // MINUTE
        return {
            "earlier_when": "event",
            "earlier_at": "",
            "earlier_minutes": str(abs(minutes)),
            "earlier_side": "after" if minutes > 0 else "before",
        }
    return {
        "earlier_when": "at",
        "earlier_at": local_text(start.astimezone(zoned.zone)),
        "earlier_minutes": when.minutes,
        "earlier_side": when.side,
    }
