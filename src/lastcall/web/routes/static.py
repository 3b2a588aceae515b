"""Styles, scripts and icons, and the one address that only says that the server is there."""

from __future__ import annotations

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from lastcall.errors import NotFound
from lastcall.web.access import Access, access
from lastcall.web.room import Web

FOR_EVER = "public, max-age=31536000, immutable"


@get("/static/{name:str}", opt=access(Access.PUBLIC))
async def static_file(name: FromPath[str], web: NamedDependency[Web]) -> Response[bytes]:
    found = web.pages.assets.find(name)
    if found is None:
        raise NotFound("not_found", "There is no such file.")
    return Response(found.content, media_type=found.media_type, headers={"Cache-Control": FOR_EVER})


@get("/ops/health", opt=access(Access.PUBLIC), media_type="text/plain")
async def health() -> str:
    """Alive: it answers. Nothing is looked up, so that asking often costs nothing."""
    return "ok"


HANDLERS = (static_file, health)
