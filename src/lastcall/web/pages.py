"""From a template to an answer: the environment, what every page gets, and the answers to htmx."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import MediaType, Request, Response
from litestar.response import Redirect

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.db.ids import encode_id
from lastcall.decisions.inbox.item import Count
from lastcall.people.offer import Offer
from lastcall.web import times
from lastcall.web.access import FORM_FIELD, Cookies, Visitor
from lastcall.web.assets import Assets

ZONE_COOKIE = "lastcall-zone"
"""The viewer's zone, written by our own script; it decides nothing but how times are shown."""

ABOUT_MEMBERS = (
    Permission.VIEW_MEMBERS,
    Permission.APPROVE_JOIN_REQUESTS,
    Permission.INVITE_GROUP_MEMBERS,
    Permission.ASSIGN_VRCHAT_ROLES,
    Permission.REMOVE_GROUP_MEMBERS,
    Permission.MANAGE_BANS,
)

NOTHING_WAITS = Count(0)
PageRequest = Request[Any, Any, Any]


@dataclass(frozen=True)
class Place:
    """Where in the house a page is: what the rail at the side shows."""

    section: str
    club_name: str | None = None
    club_slug: str | None = None
    club_zone: str | None = None
    standing: Standing | None = None
    """What the reader is in the club: the rail offers the pages they may open."""
    waiting: Count = NOTHING_WAITS
    """What waits for the reader in the club: the badge of the rail, counted as the inbox counts (DEC-06)."""

    @property
    def has_members(self) -> bool:
        """Whether something of the Members page is for the reader."""
        return self.standing is not None and any(self.standing.holds(one) for one in ABOUT_MEMBERS)


NOWHERE = Place(section="")


class Pages:
    """Renders templates. One of these lives as long as the application."""

    def __init__(self, assets: Assets, cookies: Cookies, offer: Offer) -> None:
        self.assets = assets
        self.cookies = cookies
        self._environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "id": encode_id,
            "iso": times.iso,
            "utc": times.utc,
            "span": times.duration,
            "offset": times.offset_words,
        }
        self._environment.globals |= {"asset": assets.address, "scripts": assets.is_complete, "offer": offer}

    def show(
        self,
        request: PageRequest,
        template: str,
        place: Place,
        now: datetime,
        *,
        status: int = 200,
        **values: Any,
    ) -> Response[str]:
        """Render a page or a fragment as the visitor sees it."""
        visitor: Visitor = request.state.visitor
        text = self._environment.get_template(template).render(
            visitor=visitor,
            place=place,
            zoned=times.Zoned(self.zone(request, place), now),
            form_field=FORM_FIELD,
            here=here(request),
            **values,
        )
        answer: Response[str] = Response(text, status_code=status, media_type=MediaType.HTML)
        # A page holds names and times of one reader; no cache may keep it, and "back" must not show it
        # after sign-out.
        answer.headers["Cache-Control"] = "no-store"
        if visitor.is_new:
            answer.set_cookie(self.cookies.make(self.cookies.form, visitor.form_key))
        return answer

    def ask(
        self,
        request: PageRequest,
        part: str,
        place: Place,
        now: datetime,
        *,
        title: str,
        status: int = 200,
        **values: Any,
    ) -> Response[str]:
        """Ask before something is done: the template ``part`` alone for the dialog, else a page of its own called
        ``title`` around it."""
        template = part if is_fragment(request) else "ask_page.html"
        return self.show(request, template, place, now, status=status, part=part, page_title=title, **values)

    def zone(self, request: PageRequest, place: Place) -> ZoneInfo:
        """The viewer's zone, else the club's, else UTC."""
        for name in (request.cookies.get(ZONE_COOKIE), place.club_zone):
            found = times.zone_named(name)
            if found:
                return found
        return ZoneInfo("UTC")


def here(request: PageRequest) -> str:
    """This page's address, for asking for it again."""
    query = request.url.query
    # Two slashes at the start would name another host.
    path = "/" + request.url.path.lstrip("/")
    return f"{path}?{query}" if query else path


def own_path(text: str) -> str | None:
    """``text`` where it is a path of our own, with its query: what a browser cannot take for another host.

    Two slashes or a backslash at the start would name one, and a control character is dropped by browsers
    before they look.
    """
    is_ours = (
        text.startswith("/")
        and not text.startswith("//")
        and "\\" not in text
        and text.isascii()
        and text.isprintable()
    )
    return text if is_ours else None


async def form_fields(request: PageRequest) -> dict[str, str]:
    """The text fields of a submitted form; files and repeated fields are none of ours."""
    form = await request.form()
    return {name: value for name, value in form.multi_items() if isinstance(value, str)}


async def joined_fields(request: PageRequest) -> dict[str, str]:
    """The same with every value of a repeated field (boxes that were ticked), one a line."""
    joined: dict[str, str] = {}
    for name, value in (await request.form()).multi_items():
        if isinstance(value, str):
            joined[name] = f"{joined[name]}\n{value}" if name in joined else value
    return joined


def is_fragment(request: PageRequest) -> bool:
    """Whether our own script asked, which wants the changing part of the page alone."""
    return request.headers.get("hx-request") == "true"


def go_to(path: str) -> Redirect:
    """After a form: see the other page (303), so that a reload repeats nothing."""
    return Redirect(path, status_code=303)
