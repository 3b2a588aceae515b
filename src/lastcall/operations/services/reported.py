"""What a collector reports beside an outcome, within its bounds (WRK-04)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lastcall.db.jsonb import jsonb_text
from lastcall.errors import Invalid
from lastcall.operations.codes import known
from lastcall.operations.tables import RESULT_BYTES_MOST

RESULT_FIELDS_MOST = 10
RESULT_TEXT_MOST = 600
"""Characters; a result is bounded (WRK-04)."""

RESULT_BYTES_SPARE = 200
"""Bytes for the spaces that the database puts between the parts of a result."""

_CODE = re.compile(r"[a-z0-9_]{1,100}")


def checked_code(code: str) -> str:
    """The code if the registry has it; a newer collector's own becomes ``unrecognized`` rather than a lost
    result. Raises ``Invalid`` for what is no code at all.
    """
    if _CODE.fullmatch(code) is None:
        raise Invalid(
            "code_invalid", "A code has 1 to 100 lower-case letters, digits or underscores.", field="code"
        )
    return known(code)


def bounded_result(result: Mapping[str, str]) -> str | None:
    """The result as it is stored, None for an empty one. Raises ``Invalid`` for one out of bounds."""
    if not result:
        return None
    if len(result) > RESULT_FIELDS_MOST or any(
        len(name) > 100 or len(text) > RESULT_TEXT_MOST for name, text in result.items()
    ):
        raise Invalid(
            "result_too_large",
            f"A result has at most {RESULT_FIELDS_MOST} fields of {RESULT_TEXT_MOST} characters.",
            field="result",
        )
    texts, most = dict(result), RESULT_TEXT_MOST
    while len((stored := jsonb_text(texts)).encode()) > RESULT_BYTES_MOST - RESULT_BYTES_SPARE:
        # Rather part of what VRChat said than no outcome.
        most //= 2
        texts = {name: text[:most] for name, text in result.items()}
    return stored
