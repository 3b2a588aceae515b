"""Operator, Mail: where it goes out, and what did not arrive."""

from __future__ import annotations

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from lastcall.db.cursor import cut, read_cursor
from lastcall.decisions.deliveries.dead import dead_everywhere
from lastcall.mail.states import MailState
from lastcall.people.operator_mail import mail_in_trouble
from lastcall.web.access import Access, Visitor, access
from lastcall.web.looks import CHANNELS
from lastcall.web.pages import PageRequest
from lastcall.web.room import Web, database_now
from lastcall.web.routes.operator_fleet import PLACE

LISTING = "mail"
PAGE = 50  # rows

LOOKS = {
    MailState.SENDING: ("live", "turn", "Under way"),
    MailState.SENT: ("ok", "check", "Sent"),
    MailState.FAILED: ("bad", "cross", "Not sent"),
    MailState.UNKNOWN: ("unknown", "warning", "Outcome unknown"),
}
BOUNCED = ("bad", "warning", "Came back")


@get("/operator/mail", opt=access(Access.OPERATOR))
async def operator_mail(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    after: FromQuery[str] = "",
) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
        given_up = await dead_everywhere(tx, visitor.actor, limit=PAGE)
        found = await mail_in_trouble(tx, visitor.actor, read_cursor(LISTING, after or None), PAGE + 1)
    rows, older = cut(found, PAGE, LISTING, lambda row: row.cursor)
    return web.pages.show(
        request,
        "operator_mail.html",
        PLACE,
        now,
        server=web.mailer.server,
        rows=[(row, BOUNCED if row.bounced_at else LOOKS[row.state]) for row in rows],
        older=older,
        given_up=given_up,
        channels=CHANNELS,
        is_first=not after,
    )


HANDLERS = (operator_mail,)
