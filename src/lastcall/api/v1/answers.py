"""Which answers a route can give, for the description of the API: every route names its own."""

from __future__ import annotations

from litestar.openapi.datastructures import ResponseSpec

from lastcall.api.problems import MEDIA_TYPE
from lastcall.api.v1.shapes import Problem

_MEANINGS = {
    401: "No token, or one that is unknown, expired, revoked or of somebody who is blocked.",
    403: "The token's scopes or the person's permissions do not allow it, or it needs a person at a browser.",
    404: "Unknown, or not visible to whoever asks: both look the same.",
    406: "The Accept header rules out every form this could be answered in.",
    408: "The body did not come within 30 seconds.",
    409: "The thing moved on or is taken; `fresh` is how it stands now, where the reader may see it.",
    413: "The body is too large.",
    415: "The body is no JSON by its Content-Type.",
    421: "The request names a host that is not this server's.",
    422: "A parameter or the body breaks a rule; `field` names where.",
    429: "Too fast; Retry-After says how many seconds to wait.",
    503: "The server cannot answer right now; the same request may be sent again.",
}
_ALWAYS = (401, 403, 406, 421, 422, 429, 503)
_WITH_BODY = (408, 413, 415)


def answers(*more: int, body: bool = False) -> dict[int, ResponseSpec]:
    """The problems that any call may meet, those of a call with a ``body``, and ``more``."""
    statuses = sorted({*_ALWAYS, *more, *(_WITH_BODY if body else ())})
    return {
        status: ResponseSpec(
            data_container=Problem,
            description=_MEANINGS[status],
            media_type=MEDIA_TYPE,
            generate_examples=False,
        )
        for status in statuses
    }
