"""The small family of errors that every room raises and that API, pages and commands map in one place.

Each carries a stable ``code``, a sentence for a person, and ``advice``: what the person can do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class LastcallError(Exception):
    """Base of the family. ``status`` is the HTTP status that API and pages answer with."""

    status = 500

    def __init__(self, code: str, sentence: str, *, advice: str = "", field: str | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.advice = advice
        self.field = field


class NotSignedIn(LastcallError):
    """No identity came with the call, or it is no longer valid."""

    status = 401


class NotAllowed(LastcallError):
    """The person sees the thing but may not do this to it."""

    status = 403


class NotFound(LastcallError):
    """Unknown, or not visible to whoever asks: both look the same."""

    status = 404


class Conflict(LastcallError):
    """The row moved since the person saw it. ``fresh`` is the row as it stands now, where they may see it."""

    status = 409

    def __init__(
        self, code: str, sentence: str, *, advice: str = "", field: str | None = None, fresh: Any = None
    ) -> None:
        super().__init__(code, sentence, advice=advice, field=field)
        self.fresh = fresh


class Invalid(LastcallError):
    """The input breaks a rule; ``field`` names where. ``others`` are further fields, each with what is wrong
    there, when several were seen at once.
    """

    status = 422
    others: Sequence[tuple[str, str]] = ()


class WrongRequest(LastcallError):
    """The address does not take a request of this form: another method, too large, another type of body or
    answer. ``status`` is HTTP's own for it, and ``headers`` go with the answer.
    """

    def __init__(
        self,
        code: str,
        sentence: str,
        *,
        status: int,
        advice: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, sentence, advice=advice)
        self.status = status
        self.headers = dict(headers or {})


class Disabled(LastcallError):
    """The account may not work at present. ``retry_after`` is in seconds, where its end is known."""

    status = 423

    def __init__(
        self, code: str, sentence: str, *, advice: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(code, sentence, advice=advice)
        self.retry_after = retry_after


class TooFast(LastcallError):
    """A limit was reached; ``retry_after`` is in seconds."""

    status = 429

    def __init__(self, code: str, sentence: str, *, advice: str = "", retry_after: float = 60.0) -> None:
        super().__init__(code, sentence, advice=advice)
        self.retry_after = retry_after


class Unavailable(LastcallError):
    """Something this needs is not there right now (database away, shutting down)."""

    status = 503


class DatabaseAway(Unavailable):
    """The database cannot be reached. Its sentence names the server's address: it is for whoever runs this,
    at a terminal and in the log, and no reader of a page is told.
    """
