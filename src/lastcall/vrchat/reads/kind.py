"""What one kind of read consists of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from lastcall.protocol.constants import READ_BYTES_MOST
from lastcall.vrchat.errors import ProviderPermissions, SchemaDrift
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.transport import Read, Transport
from lastcall.vrchat.writes.payload import Payload, read_payload

T = TypeVar("T")

PageSize = Annotated[int, msgspec.Meta(ge=1, le=100)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class Params(Payload, frozen=True):
    """Base of the kinds' parameters: camelCase on the wire, nothing that a kind does not know."""


class PageParams(Params, frozen=True):
    """``n`` rows from ``offset`` on."""

    n: PageSize = 25
    offset: Offset = 0


class Item(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the kinds' items: the few fields that somebody at a screen needs, never a raw record."""


@dataclass(frozen=True)
class Page:
    """What a read gave. ``next_offset`` is the offset asked for plus the number of items, and absent on the
    last page.

    ``total`` is there where VRChat counts. ``asked_at``: boot time of the oldest request that it rests on.
    """

    items: tuple[Item, ...]
    asked_at: float
    next_offset: int | None = None
    total: int | None = None

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The items as they go over the wire."""
        return tuple(msgspec.to_builtins(item) for item in self.items)

    def within(self, offset: int, most_bytes: int) -> Page:
        """This page, cut to the leading items that fit; what was cut comes with the next one."""
        size = 2
        for number, item in enumerate(self.items):
            size += len(msgspec.json.encode(item)) + 1
            if size > most_bytes and number > 0:
                return Page(self.items[:number], self.asked_at, offset + number, self.total)
        return self


@dataclass(frozen=True)
class Asking:
    """Who asks, and on what evidence. ``charge`` is called before each request, and raises to stop it."""

    transport: Transport
    own: OwnMember
    charge: Callable[[], None]

    async def get(self, path: str, shape: type[T], params: Mapping[str, str] | None = None) -> Read[T]:
        """One request below the group."""
        self.charge()
        return await self.transport.get(f"/groups/{self.own.group_id}{path}", shape, params)


@dataclass(frozen=True, kw_only=True)
class ReadKind:
    """A kind as the collector sees it.

    ``feature``: the one that a club switches on for it, by the name it has in ``FEATURE_GRANTS``. ``grants``:
    what the group must grant the account. ``check`` raises ``InvalidInput`` for fields that do not go together.
    ``requests`` counts the kind's own requests for these parameters.
    """

    name: str
    feature: str
    params: type[Params]
    item: type[Item]
    grants: tuple[str, ...] = ()
    check: Callable[[Any], None] | None = None
    requests: Callable[[Any], int]
    ask: Callable[[Asking, Any], Awaitable[Page]]

    def read_params(self, params: Any) -> Params:
        """The parameters as they came over the wire. Raises ``InvalidInput`` for bad ones."""
        known = read_payload(params, self.params)
        if self.check is not None:
            self.check(known)
        return known

    def cost(self, params: Params) -> int:
        """Provider requests: the group read that proves the grants, and the kind's own."""
        return 1 + self.requests(params)

    async def read(
        self, transport: Transport, own: OwnMember, params: Params, charge: Callable[[], None]
    ) -> Page:
        """Read one page under the evidence ``own``; ``charge`` is called before each request.

        Raises ``ProviderPermissions`` before any request when a grant is missing, and the faults of any read.
        """
        if not own.has_grants(self.grants):
            raise ProviderPermissions("The VRChat group does not let the account read this.")
        page = await self.ask(Asking(transport, own, charge), params)
        offset = params.offset if isinstance(params, PageParams) else 0
        return page.within(offset, READ_BYTES_MOST)


def one_request(_params: Any) -> int:
    return 1


def window_of(params: PageParams) -> dict[str, str]:
    """The query of one page."""
    return {"n": str(params.n), "offset": str(params.offset)}


def page_of(items: Sequence[Item], params: PageParams, asked_at: float, total: int | None = None) -> Page:
    """One page that VRChat gave. Where it counts, ``total`` says whether there is more; else a full page may have
    another after it.

    Raises ``SchemaDrift`` for a page that is longer than was asked for.
    """
    if len(items) > params.n:
        raise SchemaDrift("VRChat gave a longer page than asked for.")
    end = params.offset + len(items)
    has_more = len(items) == params.n if total is None else len(items) > 0 and end < total
    return Page(tuple(items), asked_at, end if has_more else None, total)


def slice_of(items: Sequence[Item], params: PageParams, asked_at: float) -> Page:
    """One page of a list that VRChat gives whole."""
    page = items[params.offset : params.offset + params.n]
    return page_of(page, params, asked_at, total=len(items))
