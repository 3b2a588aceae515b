"""What one route answers to every wrong way, for the test that walks them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Line:
    """What one route answers. ``None``: the case cannot arise for it.

    ``lacking`` is staff of the club without any permission (for an operator's page: somebody who is none);
    ``unknown`` has an id in its address that nobody has; ``right`` is who may, done rightly. ``path`` and
    the values of ``fields`` name the things of the test's club in braces.
    """

    signed_out: int
    expired: int
    wrong_club: int | None
    lacking: int | None
    bad_form: int | None
    unknown: int | None
    right: int
    who: str = "owner"
    path: str | None = None
    unknown_path: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


STAFF_PAGE = Line(401, 401, 404, 200, None, 404, 200, unknown_path="/c/no-such-club")
MANAGERS_PAGE = Line(401, 401, 404, 403, None, 404, 200, unknown_path="/c/no-such-club")
OWNERS_PAGE = MANAGERS_PAGE
ACCOUNT_PAGE = Line(401, 401, None, None, None, None, 200)
OPERATORS_PAGE = Line(401, 401, 404, 404, None, None, 200, who="operator")


def page(path: str | None = None, *, lacking: int = 403, **more: Any) -> Line:
    """A page about the thing in its address."""
    return Line(401, 401, 404, lacking, None, 404, 200, path=path, **more)


def form(
    path: str | None = None, *, lacking: int = 403, unknown: int | None = 404, right: int = 303, **more: Any
) -> Line:
    """A form about a club, or about the thing in its address."""
    return Line(401, 401, 404, lacking, 403, unknown, right, path=path, **more)


def own_form(right: int = 303, **more: Any) -> Line:
    """A form about whoever sends it: nobody else's, and nothing in its address."""
    return Line(401, 401, None, None, 403, None, right, **more)
