"""One club in which everything exists that a function can be called with, and people of every standing."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from tests.matrix.cases import Case

from lastcall.access.acceptance import accept_invite
from lastcall.access.invites import NewInvite, create_invite
from lastcall.app import register
from lastcall.clock import SYSTEM_CLOCK
from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.clubs.queries import roles_of
from lastcall.clubs.roles import RoleFields, create_role
from lastcall.clubs.service import add_club
from lastcall.clubs.staff import assign_role
from lastcall.connections.connect import connect_club
from lastcall.connections.states import Feature
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.events.fields import EventFields
from lastcall.events.import_queries import ImportView
from lastcall.events.queries import EventView
from lastcall.events.services.importing import import_file
from lastcall.events.services.write import create_event
from lastcall.events.times import Timed
from lastcall.mail.mailer import Mailer
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import Enqueued, enqueue
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.passkey_answers import RelyingParty
from lastcall.people.providers.providers import Providers, providers_from
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person
from lastcall.people.sessions import Browser
from lastcall.provider_settings import ProviderKind, ProviderSettings
from lastcall.reads.asking import request_read
from lastcall.testing.agents import let_in_agent
from lastcall.testing.connecting import activate
from lastcall.testing.fleet import ready_account
from lastcall.testing.staff import change_role

URL = "http://localhost:8420"
PARTY = RelyingParty("localhost", URL)
VRCHAT_ROLE = "grol_00000000-0000-4000-8000-000000000001"
TARGET = "usr_00000000-0000-4000-8000-000000000001"
SLUG = "matrix"
AN_EVENT = EventFields("Evening", Timed(datetime(2099, 1, 1, 20, tzinfo=UTC)), "UTC")


@dataclass
class World:
    db: Database
    club_id: UUID
    roles: dict[str, UUID]
    owner: Actor
    operator: Actor
    guest: Actor
    """Asks to be let in."""
    keeper: Actor
    """Holds the role ``spare``, which everybody on the staff may hand on."""
    leaving: Actor
    """On whom authority is tried that ended just before."""
    invite: NewInvite
    request_id: UUID
    account_id: UUID
    connection_id: UUID
    queued: Enqueued
    read_id: UUID
    event: EventView
    document: ImportView
    agent: AgentActor
    cases: list[Case] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def mailer(self) -> Mailer:
        """One that sends nothing."""
        return Mailer(self.db, None, URL)

    @property
    def providers(self) -> Providers:
        """One that is not asked before the browser was there."""
        entry = ProviderSettings("discord", ProviderKind.DISCORD, "client", "secret", label="Discord")
        return providers_from([entry], URL, SYSTEM_CLOCK)

    def browser(self) -> Browser:
        """A browser at an address of its own: no limit counts two of these together."""
        number = next(self.numbers)
        return Browser(f"key {number}", source=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")


async def person(db: Database, name: str, *, operator: bool = False) -> Actor:
    """Somebody who signed in just now."""
    person_id = await add_person(db, f"{name}@example.org", name.capitalize(), operator=operator)
    return Actor(person_id, name.capitalize(), operator, is_recent=True)


async def build(db: Database, needed: Collection[frozenset[Permission]]) -> World:
    """``needed``: the sets of several permissions that some function needs together."""
    register()
    owner, guest, keeper, leaving = [
        await person(db, name) for name in ("owner", "guest", "keeper", "leaving")
    ]
    operator = await person(db, "operator", operator=True)
    await person(db, "other-operator", operator=True)
    club_id = await add_club(db, None, "Matrix", SLUG, "UTC", owner.person_id)
    spare = (await create_role(db, owner, club_id, RoleFields("Spare"))).id
    async with db.read() as tx:
        roles = {one.preset_key or "spare": one for one in await roles_of(tx, club_id)}
    for one in roles.values():
        if one.preset_key is not None:
            await change_role(db, owner, club_id, one.id, assignable=[spare], provider_roles=[VRCHAT_ROLE])
    await assign_role(db, owner, club_id, spare, keeper.person_id)
    key = await ready_account(db, "porter", "usr_porter")
    connection_id = await connect_club(
        db,
        None,
        club_id,
        group_id="grp_matrix",
        group_name="Matrix",
        account_id=key.account_id,
        features=list(Feature),
    )
    await activate(db, club_id, connection_id)
    asked = await create_invite(db, owner, club_id, [spare], approves=False)
    world = World(
        db=db,
        club_id=club_id,
        roles={name: one.id for name, one in roles.items()},
        owner=owner,
        operator=operator,
        guest=guest,
        keeper=keeper,
        leaving=leaving,
        invite=await create_invite(db, owner, club_id, [spare]),
        request_id=(await accept_invite(db, guest, asked.token)).request_id,
        account_id=key.account_id,
        connection_id=connection_id,
        queued=await enqueue(
            db,
            owner,
            club_id,
            "request-of-owner",
            [{"kind": "invite_member", "targetUserId": TARGET}],
            Immediate(),
        ),
        read_id=(await request_read(db, owner, club_id, "bans", {})).id,
        event=await create_event(db, owner, club_id, AN_EVENT),
        document=await import_file(
            db, owner, club_id, "evenings.ics", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
        ),
        agent=(await let_in_agent(db, club_id, owner.person_id))[0],
    )
    world.cases = [*_people(world), *await _staff(world, needed)]
    other = await person(db, "stranger")
    await add_club(db, None, "Elsewhere", "elsewhere", "UTC", other.person_id)
    world.cases.append(Case("owner of another club", other))
    return world


def _people(world: World) -> list[Case]:
    owner, operator = world.owner, world.operator
    stale = {"is_recent": False}
    return [
        Case("owner", owner, is_owner=True, is_staff=True, permissions=ALL_PERMISSIONS),
        Case("owner, not recent", replace(owner, **stale), True, True, ALL_PERMISSIONS),
        Case("operator", operator, is_operator=True),
        Case("operator, not recent", replace(operator, **stale), is_operator=True),
        Case("command line", None),
    ]


def _roles(needed: Collection[frozenset[Permission]]) -> Iterator[Case]:
    """Custom roles: without a permission, with each alone, with all but each, and with exactly what is needed."""
    yield Case("nothing", None)
    for one in Permission:
        yield Case(f"only {one}", None, permissions=frozenset({one}), only=one)
        yield Case(f"all but {one}", None, permissions=ALL_PERMISSIONS - {one}, all_but=one)
    for several in needed:
        name = " and ".join(sorted(several))
        yield Case(f"only {name}", None, permissions=several, exactly=several)


_HOLDER = """
    with person as (
        insert into people (id, email, display_name) values ($2, $3, $4)
    ), role as (
        insert into staff_roles
               (club_id, id, name, permissions, assignable_role_ids, permitted_provider_role_ids)
        select $1, $5, $4, $6::text[], $7, $8 where $6::text[] is not null
    )
    insert into staff_assignments (club_id, id, role_id, person_id) values ($1, gen_random_uuid(), $5, $2)
"""


async def _staff(world: World, needed: Collection[frozenset[Permission]]) -> list[Case]:
    """A holder of each preset and of each of ``_roles``."""
    async with world.db.read() as tx:
        presets = [one for one in await roles_of(tx, world.club_id) if one.preset_key is not None]
    cases = [(one.id, None, Case(one.preset_key or "", None, permissions=one.permissions)) for one in presets]
    cases += [(new_id(), sorted(case.permissions), case) for case in _roles(needed)]
    holders, rows = [], []
    for role_id, permissions, case in cases:
        holder, name = new_id(), case.name[:60]
        hands_on = [[world.roles["spare"]], [VRCHAT_ROLE]]
        rows.append((world.club_id, holder, f"{holder}@example.org", name, role_id, permissions, *hands_on))
        actor = Actor(holder, name, is_operator=False, is_recent=True)
        holders.append(replace(case, actor=actor, is_staff=True))
    connection = await world.db.connect()
    await connection.executemany(_HOLDER, rows)
    await connection.close()
    return holders


def tokens(world: World, scope: Scope | None) -> list[Case]:
    """Programs of the owner and of the operator, with one scope alone and with all but that one."""

    def made(case: Case, name: str, scopes: frozenset[Scope]) -> Case:
        assert case.actor is not None
        return replace(case, name=name, actor=replace(case.actor, is_recent=False, scopes=scopes))

    by_name = {case.name: case for case in world.cases}
    owner, operator = by_name["owner"], by_name["operator"]
    everything = frozenset(Scope)
    found = [
        made(owner, "owner's token with the scope", frozenset({scope} if scope else ())),
        made(operator, "operator's token with the scope", frozenset({scope} if scope else ())),
        made(operator, "operator's token for operators", frozenset({Scope.OPERATOR})),
        made(operator, "operator's token for all but operators", everything - {Scope.OPERATOR}),
    ]
    if scope is not None:
        found.append(made(owner, "owner's token without the scope", everything - {scope}))
    return found
