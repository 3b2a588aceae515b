"""What one kind of write consists of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.transport import Read, SendResult, Transport
from lastcall.vrchat.writes import checks
from lastcall.vrchat.writes.judging import Judgement, Write
from lastcall.vrchat.writes.payload import Payload, read_payload

FRIENDSHIP_NAME = "friendship"
"""The preflight read that the server wants to see too: whether the target is a friend of the account."""


@dataclass(frozen=True)
class PreflightRead:
    """A read that a kind needs between the group read and its write. It makes exactly one request.

    ``ask`` gets the transport, the payload and the account's standing, and raises a ``ProviderFault`` for
    whatever forbids the write; what it returns is found in ``Seen`` under ``name``.
    """

    name: str
    ask: Callable[[Transport, Any, OwnMember], Awaitable[Read[Any]]]


@dataclass(frozen=True)
class Seen:
    """All that a preflight read: the group with the account's standing, then the kind's own reads by name."""

    own: OwnMember
    found: Mapping[str, Read[Any]] = field(default_factory=dict)

    @property
    def asked_at(self) -> float:
        """Boot time of the oldest of them."""
        return min([self.own.asked_at, *(read.asked_at for read in self.found.values())])

    @property
    def friendship(self) -> Read[bool] | None:
        """Whether the target is a friend of the account, where the kind needs that."""
        return self.found.get(FRIENDSHIP_NAME)


@dataclass(frozen=True, kw_only=True)
class WriteKind:
    """A kind as the collector sees it.

    ``feature``: the one that a club switches on for it, by the name it has in ``FEATURE_GRANTS``. ``grants`` is
    what the group must grant whatever the payload says, ``more_grants`` what this payload needs beyond.
    ``is_protective``: never against the account itself or the group's owner. ``check`` raises ``InvalidInput`` for
    fields that do not go together. ``reads`` are carried out in their order. ``plan_seen`` makes the write, or
    raises a ``ProviderFault`` when what was seen forbids it; ``judge`` says what became of it.
    """

    name: str
    feature: str
    payload: type[Payload]
    grants: tuple[str, ...]
    more_grants: Callable[[Any], tuple[str, ...]] | None = None
    is_protective: bool = False
    check: Callable[[Any], None] | None = None
    reads: tuple[PreflightRead, ...] = ()
    plan_seen: Callable[[Any, Seen], Write]
    judge: Callable[[Write, SendResult], Judgement]

    @property
    def cost(self) -> int:
        """Provider requests: the group read, the kind's own reads, the write. The identity read is the
        account's (BUD-01).
        """
        return 2 + len(self.reads)

    def read(self, payload: Any) -> Payload:
        """The payload as it came over the wire. Raises ``InvalidInput`` for a bad one."""
        known = read_payload(payload, self.payload)
        if self.check is not None:
            self.check(known)
        return known

    def grants_for(self, payload: Any) -> tuple[str, ...]:
        """Everything that the group must grant the account for this payload."""
        return self.grants if self.more_grants is None else self.grants + self.more_grants(payload)

    def admit(self, payload: Any, own: OwnMember) -> None:
        """The look at grants and target, as soon as the group is read and before anything else is.

        Raises ``ProviderPermissions`` or ``ProtectedTarget``.
        """
        checks.need_grants(own, self.grants_for(payload))
        if self.is_protective:
            checks.need_unprotected(own, payload.target_user_id)

    async def look(
        self, transport: Transport, payload: Any, own: OwnMember, charge: Callable[[], None]
    ) -> Seen:
        """Admit, then carry out the kind's own reads; ``charge`` is called before each request."""
        self.admit(payload, own)
        found: dict[str, Read[Any]] = {}
        for each in self.reads:
            charge()
            found[each.name] = await each.ask(transport, payload, own)
        return Seen(own, found)

    def plan(self, payload: Any, seen: Seen) -> Write:
        """The write for a payload that was read, after what was seen. Raises a ``ProviderFault``."""
        self.admit(payload, seen.own)
        return self.plan_seen(payload, seen)
