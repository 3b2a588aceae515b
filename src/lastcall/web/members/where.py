"""Where on the Members page somebody is: the list, its page, and who is ticked. All of it stands in the address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from lastcall.errors import Invalid
from lastcall.reads.queries import Read
from lastcall.web.club import ClubPage
from lastcall.web.members.tabs import LISTS, PAGE, SEARCH_LEAST, SEARCH_MOST, tab_of_read
from lastcall.web.pages import PageRequest

DIGITS_MOST = 8
TICKS_MOST = PAGE
TICK_MOST = 60
"""Characters of an id in the address; a VRChat user id has 40."""


@dataclass(frozen=True)
class Where:
    """``offset`` counts people; ``ticks`` are user ids."""

    tab: str
    search: str = ""
    offset: int = 0
    ticks: tuple[str, ...] = ()

    def address(self, page: ClubPage, **more: str) -> str:
        """Its path, with what is not usual, and ``more`` that is not empty."""
        named: list[tuple[str, Any]] = [("search", self.search), ("offset", self.offset), *more.items()]
        kept = [(name, value) for name, value in named if value]
        query = urlencode([*kept, *(("tick", tick) for tick in self.ticks)])
        path = page.path(f"members/{self.tab}")
        return f"{path}?{query}" if query else path

    def page_at(self, offset: int | None) -> Where | None:
        """Another page of the list, where nobody is ticked; None for none."""
        return None if offset is None else replace(self, offset=max(offset, 0), ticks=())

    def check(self) -> None:
        """Raise ``Invalid`` for a search that VRChat would not take."""
        if self.search and not (
            SEARCH_LEAST <= len(self.search) <= SEARCH_MOST and self.search.isprintable()
        ):
            raise Invalid(
                "search_invalid",
                f"A search takes {SEARCH_LEAST} to {SEARCH_MOST} characters of a name.",
                advice="Type some of the name and search again.",
                field="search",
            )

    @property
    def asks(self) -> tuple[str, dict[str, Any]]:
        """The read that shows it, with its parameters."""
        tab = LISTS[self.tab]
        page = {"n": PAGE, "offset": self.offset}
        if self.search and tab.search is not None:
            return tab.search, {"query": self.search, **page}
        return tab.read, page


def where_asked(request: PageRequest, tab: str) -> Where:
    """What the address says."""
    query = request.query_params
    offset = query.get("offset", "")
    is_number = offset.isascii() and offset.isdigit() and len(offset) <= DIGITS_MOST
    return Where(
        tab,
        query.get("search", "").strip()[: SEARCH_MOST + 1] if LISTS[tab].search else "",
        int(offset) if is_number else 0,
        tuple(tick[:TICK_MOST] for tick in query.getall("tick", [])[:TICKS_MOST]),
    )


def where_read(read: Read, ticks: tuple[str, ...] = ()) -> Where | None:
    """Where a read is shown; None for one that no list shows."""
    tab = tab_of_read(read.kind.name)
    if tab is None:
        return None
    params: Any = read.params
    return Where(tab.name, getattr(params, "query", ""), params.offset, ticks)
