"""What one route answers to every wrong way, for the test that walks them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.web.conftest import World


@dataclass(frozen=True)
class Line:
    """What one route answers. ``None``: the case cannot arise for it.

    ``lacking`` is staff of the club without any permission (for an operator's page: somebody who is none);
    ``unknown`` has an id in its address that nobody has; ``right`` is who may, done rightly.
    """

    signed_out: int
    expired: int
    wrong_club: int | None
    lacking: int | None
    bad_form: int | None
    unknown: int | None
    right: int
    who: str = "owner"
    path: Callable[[World, dict[str, str]], str] | None = None
    unknown_path: str | None = None
    fields: Callable[[World, dict[str, str]], dict[str, str]] = lambda _world, _ids: {}


STAFF_PAGE = Line(401, 401, 404, 200, None, 404, 200, unknown_path="/c/no-such-club")
MANAGERS_PAGE = Line(401, 401, 404, 403, None, 404, 200, unknown_path="/c/no-such-club")
OWNERS_PAGE = MANAGERS_PAGE
ACCOUNT_PAGE = Line(401, 401, None, None, None, None, 200)
OPERATORS_PAGE = Line(401, 401, 404, 404, None, None, 200, who="operator")


def at(template: str) -> Callable[[World, dict[str, str]], str]:
    return lambda _world, ids: template.format(**ids)
