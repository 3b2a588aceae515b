"""Settings of which there may be any number: a table ``[<nouns>.<name>]`` each, or ``LASTCALL_<NOUN>_<NAME>_…``.

They are tables and not fields of their own. Environment variables fill in or replace single values of a table, so
that a secret need not stand in a file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lastcall.errors import Invalid

_NAME = re.compile(r"[a-z][a-z0-9]{0,30}")
BOOLEANS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}

Given = dict[str, tuple[str, Any]]
"""The values of one table by their key, each with where it came from."""


@dataclass(frozen=True)
class Tables:
    """One kind of table. ``article`` goes before the noun in a sentence; ``fields`` are the keys that it knows."""

    noun: str
    article: str
    fields: tuple[str, ...]

    @property
    def nouns(self) -> str:
        return f"{self.noun}s"

    @property
    def prefix(self) -> str:
        """What the names of its environment variables begin with."""
        return f"LASTCALL_{self.noun.upper()}_"

    def read(
        self, tables: Mapping[str, Any], environment: Mapping[str, str], file_name: str
    ) -> dict[str, Given]:
        """Every table by its name, in the order of the names; the environment wins value by value.

        Raises ``Invalid`` naming the setting and its place.
        """
        given: dict[str, Given] = {}
        for name, table in tables.items():
            where = f"[{self.nouns}.{name}] in {file_name}"
            if not isinstance(table, Mapping):
                raise self.wrong(f"{where} must be a table with a {self.fields[0]}.")
            self._check_name(name, where)
            for key, value in table.items():
                if key not in self.fields:
                    raise self._unknown(key, where, key)
                given.setdefault(name, {})[key] = (f"{key} of {where}", value)
        for variable, value in environment.items():
            if variable.startswith(self.prefix):
                name, key = self._split(variable)
                given.setdefault(name, {})[key] = (variable, value)
        return dict(sorted(given.items()))

    def text(self, source: str, value: Any) -> str:
        """The value as text that is not empty."""
        if not isinstance(value, str) or not value.strip() or not value.strip().isprintable():
            raise self.wrong(f"The setting {source} must be text.")
        return value.strip()

    def boolean(self, source: str, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in BOOLEANS:
            return BOOLEANS[value.strip().lower()]
        raise self.wrong(f"The setting {source} must be true or false.")

    def wrong(self, sentence: str, advice: str = "") -> Invalid:
        return Invalid("wrong_setting", sentence, advice=advice, field=self.nouns)

    def _split(self, variable: str) -> tuple[str, str]:
        """``LASTCALL_PROVIDER_GUILD_CLIENT_ID`` is ``client_id`` of ``guild``."""
        name, _, key = variable.removeprefix(self.prefix).lower().partition("_")
        self._check_name(name, f"the variable {variable}")
        if key not in self.fields:
            raise self._unknown(variable, "the environment", key)
        return name, key

    def _check_name(self, name: str, where: str) -> None:
        if not _NAME.fullmatch(name):
            raise self.wrong(
                f"The {self.noun}'s name in {where} must be a small letter, then small letters and digits, at most 31."
            )

    def _unknown(self, name: str, where: str, key: str) -> Invalid:
        nearest = difflib.get_close_matches(key, self.fields, n=1, cutoff=0.0)[0]
        return Invalid(
            "unknown_setting",
            f"{self.article} {self.noun} has no setting {name} ({where}); the nearest one is {nearest}.",
            advice="Correct the name or remove it.",
            field=self.nouns,
        )
