"""What the Connection page shows, made of what the rooms know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import RoleView, roles_of
from lastcall.connections.evidence import GrantsSeen
from lastcall.connections.health import ConnectionHealth, connection_health
from lastcall.connections.queries import ConnectionCard, Readiness, connection_card
from lastcall.connections.states import BASELINE_GRANTS, USABLE, Feature
from lastcall.db.transaction import Reader
from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.create_instance import CreateInstance
from lastcall.operations.queries import unsent_of
from lastcall.protocol.constants import SERVER_EVIDENCE_AGE
from lastcall.reads.kinds import KINDS as READ_KINDS
from lastcall.telemetry.queries import CoverageView, coverage_of
from lastcall.web.connection_words import GRANTS

_ACCESS: dict[Literal["members", "plus", "public"], str] = {
    "members": "members only",
    "plus": "members and their friends",
    "public": "public",
}


@dataclass(frozen=True)
class Grant:
    """A grant by its code and by what VRChat's pages call it; ``is_held`` is None where nothing was read yet."""

    code: str
    name: str
    is_held: bool | None


@dataclass(frozen=True)
class Need:
    """A grant that a feature can use, with what it is for."""

    grant: Grant
    uses: tuple[str, ...]


@dataclass(frozen=True)
class FeatureView:
    """A feature: whether it is on, what it lacks and cannot do without, and every grant that some of it needs."""

    feature: Feature
    is_on: bool
    is_ready: bool
    missing: tuple[Grant, ...]
    needs: tuple[Need, ...]


@dataclass(frozen=True)
class Allowlist:
    """A staff role that may give and take VRChat roles: which, by their names."""

    role: RoleView
    names: tuple[str, ...]


@dataclass(frozen=True)
class Sight:
    """Everything on the page of a connected club. ``unsent`` counts what is queued, by kind."""

    card: ConnectionCard
    health: ConnectionHealth
    coverage: CoverageView
    features: tuple[FeatureView, ...]
    allowlists: tuple[Allowlist, ...]
    unsent: dict[str, int]

    @property
    def is_fresh(self) -> bool:
        """Whether what is said of grants was read within the last minute, and would be believed now."""
        age = self.card.evidence_age
        return age is not None and age <= SERVER_EVIDENCE_AGE

    @property
    def is_usable(self) -> bool:
        return self.health.state in USABLE

    @property
    def missing(self) -> tuple[Grant, ...]:
        """What the features that are on cannot do without, each once."""
        found = (grant for view in self.features if view.is_on for grant in view.missing)
        return tuple({grant.code: grant for grant in found}.values())

    def unsent_of(self, feature: Feature | None = None) -> list[tuple[str, int]]:
        """The labels of the kinds that wait, of one feature or all, with how many of each."""
        return [
            (kind.words.label, self.unsent[name])
            for name, kind in KINDS.items()
            if name in self.unsent and feature in {None, kind.feature}
        ]


async def sight_of(tx: Reader, club_id: UUID) -> Sight | None:
    """None for a club that is not connected."""
    card = await connection_card(tx, club_id)
    health = await connection_health(tx, club_id)
    coverage = await coverage_of(tx, club_id)
    if card is None or health is None or coverage is None:
        return None
    names = {role.id.lower(): role.name or role.id for role in card.roles}
    return Sight(
        card=card,
        health=health,
        coverage=coverage,
        features=tuple(_feature(ready, health.grants) for ready in card.readiness),
        allowlists=tuple(
            Allowlist(role, tuple(sorted(names.get(one, one) for one in role.provider_role_ids)))
            for role in await roles_of(tx, club_id)
            if Permission.ASSIGN_VRCHAT_ROLES in role.permissions
        ),
        unsent=await unsent_of(tx, club_id, card.connection_id),
    )


def role_choices(card: ConnectionCard, chosen: Iterable[str]) -> list[tuple[str, str]]:
    """The group's roles as (id, name), and those on the list that the group no longer has."""
    known = {role.id.lower(): role.name or role.id for role in card.roles}
    gone = {one: one for one in sorted(chosen) if one not in known}
    return list((known | gone).items())


def counted(unsent: Sequence[tuple[str, int]]) -> str:
    """``3 actions (Ban: 2, Post: 1)``; empty when nothing waits."""
    total = sum(count for _, count in unsent)
    if not total:
        return ""
    parts = ", ".join(f"{label}: {count}" for label, count in unsent)
    return f"{total} action{'s' if total > 1 else ''} ({parts})"


def _feature(ready: Readiness, grants: GrantsSeen | None) -> FeatureView:
    needs = tuple(Need(_grant(code, grants), tuple(uses)) for code, uses in needed_by(ready.feature).items())
    missing = tuple(need.grant for need in needs if need.grant.code == ready.missing_grant)
    return FeatureView(ready.feature, ready.is_on, ready.is_ready, missing, needs)


def needed_by(feature: Feature) -> dict[str, list[str]]:
    """Each grant that the feature can use, with what it is for."""
    uses: dict[str, list[str]] = {}
    baseline = BASELINE_GRANTS[feature]
    if baseline is not None:
        uses[baseline] = []
    for label, codes in _uses(feature):
        for code in codes:
            uses.setdefault(code, []).append(label)
    return uses


def _uses(feature: Feature) -> Iterable[tuple[str, tuple[str, ...]]]:
    if feature is Feature.ANALYTICS:
        yield "Joins and departures", ("group-audit-view",)
    for kind in KINDS.values():
        if kind.feature is not feature:
            continue
        if kind.payload is CreateInstance:
            for access, words in _ACCESS.items():
                payload = CreateInstance(world_id="", access=access, region="us")
                yield f"{kind.words.label} ({words})", kind.grants_for(payload)
        else:
            yield kind.words.label, kind.grants
    for read in READ_KINDS.values():
        if read.feature is feature:
            yield f"{read.label} (to see)", read.grants


def _grant(code: str, grants: GrantsSeen | None) -> Grant:
    return Grant(code, GRANTS[code], None if grants is None else grants.holds(code))
