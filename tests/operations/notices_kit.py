"""Operations that did not end well, and who hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from operations_world import World

from lastcall.deadlines.owner import Done, Failed, More, Stop
from lastcall.deadlines.paged import PagedOwner
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.operations.owners import operation_owners
from lastcall.testing.mail import MailSink

FROM = "Night Shift <lastcall@club.example>"
PUBLIC_URL = "https://lastcall.club.example"
OWNER, MODERATOR = "Owner@example.test", "Moderator@example.test"


@asynccontextmanager
async def mailing(world: World, sink: MailSink) -> AsyncIterator[PagedOwner]:
    """The owner of the deadline, with a mailer that hands over to ``sink``."""
    async with Mailer(world.db, mail_server(sink.url, FROM), PUBLIC_URL).running() as mailer:
        yield mail_owner(world, mailer)


def mail_owner(world: World, mailer: Mailer) -> PagedOwner:
    found = next(owner for owner in operation_owners(world.db, mailer) if owner.name == "operation_mail")
    assert isinstance(found, PagedOwner)
    return found


async def passes(owner: PagedOwner) -> Done | Failed:
    """Passes until nothing that is due is left."""
    while isinstance(result := await owner.run_pass(Stop()), More):
        pass
    assert isinstance(result, Done | Failed)
    return result


async def verify_addresses(world: World) -> None:
    await world.run("update people set email_verified_at = lastcall_now()")
