"""Commands on clubs themselves: add one, and edit its settings. Its life is in ``life.py``."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, insert, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.clubs.gates import bump_gate, lock_person
from lastcall.clubs.listeners import ClubChange, club_changed
from lastcall.clubs.permissions import PRESETS
from lastcall.clubs.policy import require_owner_or_operator
from lastcall.clubs.queries import SLUG_DIRECTORY, ClubSettings, read_settings
from lastcall.clubs.tables import MAX_RETENTION_DAYS, Club, ClubGate, StaffRole
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.local_time import valid_zone
from lastcall.mail.addresses import valid_address
from lastcall.names import valid_name
from lastcall.people.actor import Actor, require_operator
from lastcall.people.audit import audit
from lastcall.people.holding import hold_operator
from lastcall.people.queries import person_by_email
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class ClubFields:
    """What a club's settings hold. ``zone`` is an IANA name; ``retention_days`` of 24 hours, None for never."""

    name: str
    slug: str
    zone: str
    retention_days: int | None


@dataclass(frozen=True)
class NewClub:
    """A club that was made, and its owner: somebody known, or a person made with it."""

    club_id: UUID
    owner_id: UUID
    is_new_person: bool


async def create_club(
    db: Database, actor: Actor | None, name: str, slug: str, zone: str, owner_email: str
) -> NewClub:
    """Add a club for the person with this address, who is added too when nobody has it.

    Operators and the host's command line (no ``actor``) may. Errors as for ``add_club``, and ``Invalid`` for a
    malformed address.
    """
    require_operator(actor)
    owner_email = valid_address(owner_email, field="owner_email")
    async with db.transaction() as tx:
        try:
            owner_id, is_new_person = await person_by_email(tx, owner_email), False
        except NotFound:
            display_name = owner_email.partition("@")[0]
            owner_id, is_new_person = await add_person(db, owner_email, display_name, actor=actor), True
        club_id = await add_club(db, actor, name, slug, zone, owner_id)
    return NewClub(club_id, owner_id, is_new_person)


async def add_club(
    db: Database, actor: Actor | None, name: str, slug: str, zone: str, owner_id: UUID
) -> UUID:
    """Add a club with its owner, its gate and the preset roles; answers its id.

    Operators and the host's command line (no ``actor``) may. Raises ``Invalid`` for a malformed name, slug or
    zone, ``NotFound`` for an unknown or blocked owner and ``Conflict`` when another club has the slug.
    """
    require_operator(actor)
    name = valid_name(name)
    _check_slug(slug)
    valid_zone(zone)
    club_id = new_id()
    async with db.transaction() as tx:
        # The lock: an owner who is blocked or erased meanwhile is so before this, and refused, or after it.
        await hold_operator(tx, actor, owner_id)
        if not await lock_person(tx, owner_id):
            raise NotFound(
                "person_unknown",
                "The owner is unknown or blocked.",
                advice="Add the person first, unblock them, or choose another.",
            )
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
                    "description": preset.description,
                    "permissions": sorted(preset.permissions),
                    "preset_key": preset.key,
                }
                for preset in PRESETS
            ],
        )
        await log(tx, club_id, actor or COMMAND_LINE, "club.added", "club", club_id, {"slug": slug})
        await audit(tx, actor.person_id if actor else None, "club.added", str(club_id), slug=slug)
    return club_id


async def edit_club(
    db: Database, actor: Actor | None, club_id: UUID, fields: ClubFields, seen: datetime
) -> ClubSettings:
    """Set all settings at once; answers them as they are then. The owner, an operator or the command line.

    ``seen`` is the ``updated_at`` that the form was made from. Raises ``Invalid`` with the field, ``Conflict``
    with the fresh settings when they moved meanwhile, and ``Conflict`` when another club has the slug.
    """
    fields = replace(fields, name=valid_name(fields.name))
    _check_slug(fields.slug)
    valid_zone(fields.zone)
    _check_retention(fields.retention_days)
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner_or_operator(tx, actor, club_id, scope=Scope.CLUBS)
        before = await read_settings(tx, club_id)
        if before.updated_at != seen:
            raise Conflict(
                "club_moved",
                "Somebody changed these settings meanwhile.",
                advice="Look at them as they are now, and edit again.",
                fresh=before,
            )
        if fields.slug != before.slug:
            await _take_slug(tx, fields.slug, club_id)
            await tx.execute(
                delete(Directory).where(
                    Directory.kind == SLUG_DIRECTORY,
                    Directory.key == before.slug,
                    Directory.club_id == club_id,
                )
            )
        await tx.execute(
            update(Club).where(Club.id == club_id).values(**asdict(fields), updated_at=Club.forward())
        )
        changed = {name: value for name, value in asdict(fields).items() if value != getattr(before, name)}
        await log(tx, club_id, actor or COMMAND_LINE, "club.edited", "club", club_id, changed)
        if "retention_days" in changed:
            await club_changed(tx, club_id, ClubChange.RETENTION)
        return await read_settings(tx, club_id)


async def _take_slug(tx: Transaction, slug: str, club_id: UUID) -> None:
    taken = await tx.scalar(
        upsert(Directory)
        .values(kind=SLUG_DIRECTORY, key=slug, club_id=club_id)
        .on_conflict_do_nothing()
        .returning(Directory.club_id)
    )
    if taken is None:
        raise Conflict(
            "slug_taken",
            f"Another club is already at “{slug}”.",
            advice="Choose another short name.",
            field="slug",
        )


def _check_slug(slug: str) -> None:
    if _SLUG.fullmatch(slug) is None:
        raise Invalid(
            "slug_malformed",
            f"“{slug}” cannot be the club's address.",
            advice="Use 1 to 40 lower-case letters, digits and hyphens, with no hyphen at either end.",
            field="slug",
        )


def _check_retention(days: int | None) -> None:
    if days is not None and not 1 <= days <= MAX_RETENTION_DAYS:
        raise Invalid(
            "retention_days_out_of_range",
            f"Items cannot be archived after {days} days.",
            advice=f"Choose 1 to {MAX_RETENTION_DAYS} days, or none to archive nothing by itself.",
            field="retention_days",
        )
