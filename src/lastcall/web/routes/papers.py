"""What people keep for later: recipient lists, which all who invite share, and drafts of posts, which are their
writer's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.db.cursor import read_cursor
from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.operations.drafts import DRAFTS, post_draft, post_drafts
from lastcall.operations.lists import LISTS, ListView, recipient_list, recipient_lists, require_inviting
from lastcall.operations.paper_tables import NAME_MOST
from lastcall.operations.services.drafts import discard_draft, require_changeable
from lastcall.operations.services.lists import create_list, delete_list, edit_list
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.fields import known_id, read_revision
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.recipients import Recipients, read_recipients
from lastcall.web.room import Web

SECTION = "new"


@dataclass(frozen=True)
class Question:
    """What is asked before a paper is thrown away. ``revision`` is the one that the question shows, and the only one
    that a yes is good for."""

    question: str
    name: str
    about: str
    button: str
    action: str
    back: str
    revision: int


@get("/c/{slug:str}/posts", opt=access(Access.STAFF))
async def drafts_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    """The visitor's own drafts."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        drafts, older = await post_drafts(
            tx, visitor.actor, page.club.id, after=read_cursor(DRAFTS, after or None)
        )
    return web.pages.show(
        request, "posts.html", page.place(SECTION), page.now, drafts=drafts, older=older, is_first=not after
    )


@get("/c/{slug:str}/posts/{draft_id:str}/discard", opt=access(Access.STAFF))
async def ask_discard(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    draft_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await post_draft(tx, visitor.actor, page.club.id, known_id(draft_id))
    require_changeable(found, found.revision)
    return _ask(
        request,
        web,
        page,
        Question(
            "Discard this draft?",
            found.fields.get("title") or "Without a title",
            "What it says is lost. Nothing of it was sent or queued.",
            "Discard the draft",
            action=page.path(f"posts/{encode_id(found.id)}/discard"),
            back=page.path("posts"),
            revision=found.revision,
        ),
    )


@post("/c/{slug:str}/posts/{draft_id:str}/discard", opt=access(Access.STAFF))
async def discard(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    draft_id: FromPath[str],
) -> Redirect:
    fields = await form_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await discard_draft(web.database, visitor.actor, page.club.id, known_id(draft_id), read_revision(fields))
    return go_to(page.path("posts"))


@get("/c/{slug:str}/lists", opt=access(Access.STAFF))
async def lists_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        lists, older = await recipient_lists(
            tx, page.standing, page.club.id, after=read_cursor(LISTS, after or None)
        )
    return web.pages.show(
        request, "lists.html", page.place(SECTION), page.now, lists=lists, older=older, is_first=not after
    )


@get("/c/{slug:str}/lists/new", opt=access(Access.STAFF))
async def new_list(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        require_inviting(page.standing)
    return _list_form(request, web, page, None, {})


@post("/c/{slug:str}/lists/new", opt=access(Access.STAFF))
async def make_list(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    fields = await form_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        require_inviting(page.standing)
    people = read_recipients(fields.get("people", ""))
    if people.problems:
        return _list_form(request, web, page, None, fields, people=people)
    try:
        await create_list(
            web.database,
            visitor.actor,
            page.club.id,
            fields.get("name", ""),
            [one.user_id for one in people.people],
        )
    except (Invalid, Conflict) as error:
        return _list_form(request, web, page, None, fields, people=people, problem=error)
    return go_to(page.path("lists"))


@get("/c/{slug:str}/lists/{list_id:str}", opt=access(Access.STAFF))
async def open_list(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    list_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await recipient_list(tx, page.standing, page.club.id, known_id(list_id))
    return _list_form(request, web, page, found, _fields(found))


@post("/c/{slug:str}/lists/{list_id:str}", opt=access(Access.STAFF))
async def save_list(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    list_id: FromPath[str],
) -> Response[str] | Redirect:
    """Save the list at the revision that was seen."""
    fields = await form_fields(request)
    wanted = known_id(list_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await recipient_list(tx, page.standing, page.club.id, wanted)
    seen = read_revision(fields)
    people = read_recipients(fields.get("people", ""))
    if people.problems:
        return _list_form(request, web, page, found, fields, people=people)
    user_ids = [one.user_id for one in people.people]
    try:
        await edit_list(
            web.database, visitor.actor, page.club.id, wanted, fields.get("name", ""), user_ids, seen
        )
    except (Invalid, Conflict) as error:
        return _list_form(request, web, page, found, fields, people=people, problem=error)
    return go_to(page.path("lists"))


@get("/c/{slug:str}/lists/{list_id:str}/delete", opt=access(Access.STAFF))
async def ask_delete(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    list_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await recipient_list(tx, page.standing, page.club.id, known_id(list_id))
    path = page.path(f"lists/{encode_id(found.id)}")
    size = len(found.user_ids)
    return _ask(
        request,
        web,
        page,
        Question(
            "Delete this list?",
            f"{found.name}, {size} {'person' if size == 1 else 'people'}",
            "It goes for everybody in the club who invites. What was queued with it stays queued.",
            "Delete the list",
            action=f"{path}/delete",
            back=path,
            revision=found.revision,
        ),
    )


@post("/c/{slug:str}/lists/{list_id:str}/delete", opt=access(Access.STAFF))
async def delete(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    list_id: FromPath[str],
) -> Redirect:
    fields = await form_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await delete_list(web.database, visitor.actor, page.club.id, known_id(list_id), read_revision(fields))
    return go_to(page.path("lists"))


def _ask(request: PageRequest, web: Web, page: ClubPage, asked: Question) -> Response[str]:
    return web.pages.ask(
        request, "paper_ask.html", page.place(SECTION), page.now, title=asked.question, **asdict(asked)
    )


def _fields(found: ListView) -> dict[str, str]:
    return {"name": found.name, "people": "\n".join(found.user_ids), "seen": str(found.revision)}


def _list_form(
    request: PageRequest,
    web: Web,
    page: ClubPage,
    found: ListView | None,
    fields: Mapping[str, str],
    *,
    people: Recipients | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    wrong = people is not None and bool(people.problems)
    return web.pages.show(
        request,
        "list_form.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else Invalid.status if wrong else 200,
        list=found,
        fields={"name": "", "people": "", "seen": "0"} | dict(fields),
        recipients=people or Recipients((), ()),
        name_most=NAME_MOST,
        problem=problem,
    )


HANDLERS = (
    drafts_page,
    ask_discard,
    discard,
    lists_page,
    new_list,
    make_list,
    open_list,
    save_list,
    ask_delete,
    delete,
)
