"""The one rule of what stands on which shelf, as SQL, from which the lists and the counts are made alike (DEC-06).

Each source is walked in the order of its own partial index, a club at a time, and stopped at the page's size: what
is read does not grow with what waits, nor with what was decided long ago. What the reader put away is walked over.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import TextClause, text

from lastcall.decisions.inbox.item import MOST_COUNTED, Shelf
from lastcall.decisions.inbox.source import Source

IN_FORCE = "(d.until > :now or (d.until is null and d.activity_at >= {activity}))"
"""What was put away is so still: a snooze until its time, a dismissal until something happens."""
HIDDEN = f"""exists (
        select from inbox_dismissals d
         where d.club_id = s.club_id and d.person_id = :person and d.item_id = s.id
           and {IN_FORCE})"""
"""Put away by this reader."""


def on_shelf(source: Source, shelf: Shelf, *, for_person: bool) -> str:
    """The predicate over ``s`` of what of this source stands on that shelf. An agent puts nothing away."""
    activity = f"s.{source.activity}"
    parts = [source.waits]
    if source.kind is not None:
        parts.append("s.is_archived" if shelf is Shelf.ARCHIVED else "not s.is_archived")
    elif shelf is Shelf.ARCHIVED:
        parts.append("false")
    match shelf:
        case Shelf.TODAY:
            parts.append(f"{activity} >= :today")
        case Shelf.EARLIER:
            parts.append(f"{activity} < :today and {activity} > :ageing")
        case Shelf.AGEING:
            parts.append(f"{activity} <= :ageing")
        case Shelf.WAITING | Shelf.ARCHIVED | Shelf.AWAY:
            pass
    hidden = HIDDEN.format(activity=activity)
    if shelf is Shelf.AWAY:
        parts.append(hidden if for_person else "false")
    elif shelf is not Shelf.ARCHIVED and for_person:
        parts.append(f"not {hidden}")
    return " and ".join(parts)


@cache
def page_statement(
    sources: tuple[Source, ...], shelf: Shelf, *, for_person: bool, is_first: bool
) -> TextClause:
    """The rows of one page over these sources, the newest activity first, with all that they show."""
    walks = "\n union all ".join(
        _walk(source, shelf, for_person=for_person, is_first=is_first) for source in sources
    )
    facts = "\n".join(_said(source, for_person=for_person) for source in sources)
    away = (
        "d.item_id is not null as is_away, d.until as away_until"
        if for_person
        else "false as is_away, null as away_until"
    )
    put = (
        "left join inbox_dismissals d on d.club_id = p.club_id and d.person_id = :person and d.item_id = p.id"
        f" and {IN_FORCE.format(activity='p.activity_at')}"
        if for_person
        else ""
    )
    return text(f"""
        with page as (
            select * from ({walks}) found order by activity_at desc, id desc limit :limit
        )
        select p.source, p.club_id, p.id, p.activity_at, c.name as club_name, c.slug as club_slug,
               c.state as club_state, c.retention_days, r.id is not null as is_noted,
               r.keep, r.archived_at, r.archived_reason, r.revived_at, r.version, r.archive_version, {away},
               case p.source {facts} end as said
          from page p
          join clubs c on c.id = p.club_id
          left join retention r on r.club_id = p.club_id and r.id = p.id
          {put}
         order by p.activity_at desc, p.id desc
    """)  # noqa: S608 - own names


def _walk(source: Source, shelf: Shelf, *, for_person: bool, is_first: bool) -> str:
    after = "" if is_first else f" and (s.{source.activity}, s.id) < (:after_time, :after_id)"
    return f"""
        select '{source.name}' as source, f.* from unnest(cast(:clubs_{source.name} as uuid[])) as c (club_id)
         cross join lateral (
            select s.club_id, s.id, s.{source.activity} as activity_at from {source.table} s
             where s.club_id = c.club_id and {on_shelf(source, shelf, for_person=for_person)}{after}
             order by s.{source.activity} desc, s.id desc limit :limit) f"""  # noqa: S608 - own names


@cache
def count_statement(
    sources: tuple[Source, ...], shelves: tuple[Shelf, ...], *, for_person: bool
) -> TextClause:
    """How many each of these shelves shows of each source, at most ``MOST_COUNTED``."""
    counted = (_counted(source, shelf, for_person=for_person) for shelf in shelves for source in sources)
    return text("\n union all ".join(counted))


# The order is nothing to a count, but without it the planner takes a scan that may have to walk over everything.
def _counted(source: Source, shelf: Shelf, *, for_person: bool) -> str:
    return f"""
        select '{shelf}' as shelf, '{source.name}' as source, (select count(*) from (
            select from unnest(cast(:clubs_{source.name} as uuid[])) as c (club_id)
             cross join lateral (
                select from {source.table} s
                 where s.club_id = c.club_id and {on_shelf(source, shelf, for_person=for_person)}
                 order by s.{source.activity} desc, s.id desc limit {MOST_COUNTED}) f
             limit {MOST_COUNTED}) found) as number"""  # noqa: S608 - own names


def _said(source: Source, *, for_person: bool) -> str:
    due_at = "null" if source.kind is None else "s.archive_due_at"
    verdicts = source.verdicts if for_person and source.decide is not None else "jsonb_build_array()"
    return f"""
        when '{source.name}' then (
            select jsonb_build_object('facts', {source.facts}, 'seen', {source.version}, 'due_at', {due_at},
                                      'verdicts', {verdicts})
              from {source.table} s where s.club_id = p.club_id and s.id = p.id)"""  # noqa: S608 - own names
