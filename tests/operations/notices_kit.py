"""Operations that did not end well, and who hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from operations_world import World, invitation

from lastcall.clubs.policy import require_staff
from lastcall.db.ids import new_id
from lastcall.deadlines.owner import Done, Failed, More, Owner, Stop
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.operations.notices import NoticeView, notices
from lastcall.operations.owners import operation_owners
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.testing.mail import MailSink

FROM = "Night Shift <lastcall@club.example>"
PUBLIC_URL = "https://lastcall.club.example"
OWNER, MODERATOR = "Owner@example.test", "Moderator@example.test"


async def failed(world: World, number: int = 1, *, actor: Actor | None = None) -> UUID:
    """An invitation that its collector gave up before it was sent."""
    operation_id, held = await world.claimed(invitation(number), actor=actor)
    assert (await world.steps.reject(world.worker, held, "invalid_input")).is_recorded
    return operation_id


async def failed_batch(world: World, size: int) -> tuple[UUID, ...]:
    """A batch whose targets all failed."""
    made = await world.enqueue(*(invitation(n) for n in range(size)))
    for _ in range(size):
        held = world.held(await world.claim())
        assert (await world.steps.reject(world.worker, held, "invalid_input")).is_recorded
    return made.operation_ids


async def shown_to(world: World, actor: Actor) -> list[NoticeView]:
    """What the person sees now."""
    async with world.db.read() as tx:
        standing = await require_staff(tx, actor, world.club_id, scope=Scope.READ)
        return await notices(tx, standing, actor, world.club_id)


async def another_moderator(world: World, name: str = "Second") -> Actor:
    """Somebody else with the moderator's role."""
    actor = Actor(new_id(), name, is_operator=False)
    await world.run(
        "insert into people (id, email, display_name, email_verified_at) values ($1, $2, $3, lastcall_now())",
        actor.person_id,
        f"{name}@example.test",
        name,
    )
    await world.run(
        "insert into staff_assignments (club_id, id, role_id, person_id) values ($1, $2, $3, $4)",
        world.club_id,
        new_id(),
        world.role_id,
        actor.person_id,
    )
    return actor


async def leave(world: World, actor: Actor) -> None:
    """The person has no role any more."""
    await world.run("delete from staff_assignments where person_id = $1", actor.person_id)


async def lose_permission(world: World) -> None:
    """The moderators are still staff, and may not do any of this."""
    await world.run("update staff_roles set permissions = '{}'")


async def verify_addresses(world: World) -> None:
    await world.run("update people set email_verified_at = lastcall_now()")


@asynccontextmanager
async def mailing(world: World, sink: MailSink) -> AsyncIterator[Owner]:
    """The owner of the deadline, with a mailer that hands over to ``sink``."""
    async with Mailer(world.db, mail_server(sink.url, FROM), PUBLIC_URL).running() as mailer:
        yield mail_owner(world, mailer)


def mail_owner(world: World, mailer: Mailer) -> Owner:
    return next(owner for owner in operation_owners(world.db, mailer) if owner.name == "operation_mail")


async def passes(owner: Owner) -> Done | Failed:
    """Passes until nothing that is due is left."""
    while isinstance(result := await owner.run_pass(Stop()), More):
        pass
    assert isinstance(result, Done | Failed)
    return result
