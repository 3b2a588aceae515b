"""Take notices out of one's own sight."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.errors import Invalid, NotFound
from lastcall.operations.notices import theirs
from lastcall.operations.queries import PAGE_MOST
from lastcall.operations.signals import changed
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

_READ = """
    insert into operation_notice_reads (club_id, person_id, notice_id)
    select $1, $2, n.id from unnest($3::uuid[]) as n (id) order by n.id
        on conflict do nothing
"""


async def dismiss_notices(db: Database, actor: Actor, club_id: UUID, notice_ids: Collection[UUID]) -> None:
    """Show these notices to the actor no more; for others they stay. Dismissing a second time changes nothing.

    Raises ``NotFound`` when one of them is not for the actor, and then none is dismissed.
    """
    wanted = set(notice_ids)
    if len(wanted) > PAGE_MOST:
        raise Invalid(
            "too_many_notices",
            f"At most {PAGE_MOST} notices are dismissed at once.",
            advice="Dismiss them page by page.",
            field="noticeIds",
        )
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        if await theirs(tx, standing, actor.person_id, club_id, wanted) != wanted:
            raise NotFound("notice_unknown", "There is no such notice.", advice="Load the list again.")
        await tx.raw.execute(_READ, club_id, actor.person_id, list(wanted))
        tx.publish(changed(club_id))
