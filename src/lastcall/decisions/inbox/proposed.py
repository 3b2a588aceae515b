"""What an archive proposal names, for whoever decides it: in the words of the inbox, as far as they may see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text

from lastcall.clubs.policy import Standing
from lastcall.db.ids import decode_id
from lastcall.db.transaction import Reader
from lastcall.decisions.inbox.source import Source, source_named


@dataclass(frozen=True)
class ProposedItem:
    """One item. ``title`` and ``page``, its address within the club's pages, are null for whoever may not see it and
    for one that is gone (RET-19); ``label`` is that of its kind."""

    label: str
    title: str | None
    page: str | None
    reason: str


async def proposed_items(
    tx: Reader, standing: Standing, club_id: UUID, body: Mapping[str, Any]
) -> list[ProposedItem]:
    """In the order of the proposal; one statement a kind."""
    titles: dict[UUID, str] = {}
    for name in sorted({entry["kind"] for entry in body["items"]}):
        source = source_named(name)
        if source.permission is None or standing.holds(source.permission):
            ids = [decode_id(entry["id"]) for entry in body["items"] if entry["kind"] == name]
            titles |= await _titles(tx, club_id, source, ids)
    return [_item(entry, titles) for entry in body["items"]]


async def _titles(tx: Reader, club_id: UUID, source: Source, ids: list[UUID]) -> dict[UUID, str]:
    rows = await tx.execute(
        text(
            f"select s.id, {source.facts} as facts from {source.table} s"  # noqa: S608 - own names
            " where s.club_id = :club_id and s.id = any(:ids)"
        ),
        {"club_id": club_id, "ids": ids},
    )
    return {row.id: source.words(row.facts).title for row in rows.all()}


def _item(entry: Mapping[str, Any], titles: Mapping[UUID, str]) -> ProposedItem:
    source, item_id = source_named(entry["kind"]), decode_id(entry["id"])
    is_shown = item_id in titles
    return ProposedItem(
        label=source.label,
        title=titles.get(item_id),
        page=source.page(item_id) if is_shown else None,
        reason=entry["reason"],
    )
