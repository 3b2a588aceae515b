"""Commands on clubs themselves."""

from __future__ import annotations

import re
import zoneinfo
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.clubs.permissions import PRESETS
from lastcall.clubs.tables import Club, ClubGate, StaffRole
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.people.actor import Actor, require_operator
from lastcall.people.tables import Person

SLUG_DIRECTORY = "slug"
NAME_LENGTH = 80  # characters
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


async def add_club(
    db: Database, actor: Actor | None, name: str, slug: str, zone: str, owner_id: UUID
) -> UUID:
    """Add a club with its owner, its gate and the preset roles; answers its id.

    Operators and the host's command line (no ``actor``) may. Raises ``Invalid`` for a malformed name, slug or
    zone, ``NotFound`` for an unknown owner and ``Conflict`` when another club has the slug.
    """
    require_operator(actor)
    name = _valid_name(name)
    _check_slug(slug)
    _check_zone(zone)
    club_id = new_id()
    async with db.transaction() as tx:
        if await tx.scalar(select(Person.id).where(Person.id == owner_id)) is None:
            raise NotFound("person_unknown", "The owner is unknown.", advice="Add the person first.")
        await _take_slug(tx, slug, club_id)
        await tx.execute(insert(Club).values(id=club_id, slug=slug, name=name, zone=zone, owner_id=owner_id))
        await tx.execute(insert(ClubGate).values(club_id=club_id))
        await tx.execute(
            insert(StaffRole),
            [
                {
                    "club_id": club_id,
                    "id": new_id(),
                    "name": preset.name,
                    "permissions": sorted(preset.permissions),
                    "preset_key": preset.key,
                }
                for preset in PRESETS
            ],
        )
        await log(tx, club_id, actor or COMMAND_LINE, "club.added", "club", club_id, {"slug": slug})
    return club_id


async def _take_slug(tx: Transaction, slug: str, club_id: UUID) -> None:
    taken = await tx.scalar(
        upsert(Directory)
        .values(kind=SLUG_DIRECTORY, key=slug, club_id=club_id)
        .on_conflict_do_nothing()
        .returning(Directory.club_id)
    )
    if taken is None:
        raise Conflict(
            "slug_taken", f"Another club is already at “{slug}”.", advice="Choose another short name."
        )


def _valid_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        raise Invalid(
            "name_malformed",
            "The name is empty, too long or holds control characters.",
            advice=f"Give a name of 1 to {NAME_LENGTH} printable characters.",
            field="name",
        )
    return name


def _check_slug(slug: str) -> None:
    if _SLUG.fullmatch(slug) is None:
        raise Invalid(
            "slug_malformed",
            f"“{slug}” cannot be the club's address.",
            advice="Use 1 to 40 lower-case letters, digits and hyphens, with no hyphen at either end.",
            field="slug",
        )


def _check_zone(zone: str) -> None:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Invalid(
            "zone_unknown",
            f"“{zone}” is not a time zone.",
            advice="Use a name like Europe/Berlin or UTC.",
            field="zone",
        ) from error
