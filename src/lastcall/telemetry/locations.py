"""The place of a group's instance, read apart: VRChat writes the tags behind an instance's name in varying order."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lastcall.errors import Invalid

_PLACE = re.compile(
    r"(?P<world>[A-Za-z0-9_-]{1,100}):(?P<name>[^~\s:/?#\\%\x00-\x1f\x7f-\x9f]{1,100})"
    r"(?P<tags>(?:~[^~\s\x00-\x1f\x7f-\x9f]{1,200})*)"
)
_GROUP = re.compile(r"group\((?P<group>[A-Za-z0-9_-]{1,100})\)")
PERSON = "usr_"
"""VRChat's marker of a person. What holds it is refused as a whole, not cleaned: whoever sent it did not redact."""


@dataclass(frozen=True)
class Place:
    """An instance: its world, and the group that it belongs to in small letters. ``canonical`` is the same however the
    tags were ordered; ``key`` is what makes two of them one instance.
    """

    world_id: str
    name: str
    group: str
    canonical: str

    @property
    def key(self) -> tuple[str, str]:
        return self.world_id.lower(), self.name


def read_place(location: str) -> Place:
    """Raises ``Invalid`` for what is no place of a group, or names a person."""
    if PERSON in location.lower():
        raise Invalid(
            "sample_names_person",
            "An instance's location names a person.",
            advice="Run a collector of the same release as the server.",
            field="instances",
        )
    found = _PLACE.fullmatch(location)
    tags = sorted(found["tags"].split("~")[1:]) if found else []
    groups = [marker["group"] for tag in tags if (marker := _GROUP.fullmatch(tag))]
    if found is None or len(groups) != 1:
        raise Invalid(
            "sample_malformed",
            "An instance's location is not that of a group's instance.",
            advice="Run a collector of the same release as the server.",
            field="instances",
        )
    canonical = "~".join([f"{found['world']}:{found['name']}", *tags])
    return Place(found["world"], found["name"], groups[0].lower(), canonical)
