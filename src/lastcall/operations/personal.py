"""What operations keep about a person: that they queued something, by their id, for good; and what they drafted."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.people.personal_data import PersonalData


async def _reads(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(
        text("delete from operation_notice_reads where person_id = :person"), {"person": person_id}
    )


async def _drafts(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(text("delete from post_drafts where created_by = :person"), {"person": person_id})


# Whom an action was for is another person's data, so an export counts targets and names none.
SOURCES = (
    PersonalData(
        "action you queued",
        ("operation_requests.created_by",),
        "select r.id::text as k, c.slug as club, r.kind, r.size as targets, r.due_at, r.created_at"
        " from operation_requests r join clubs c on c.id = r.club_id where r.created_by = :person",
        kept="The ledger's truth: who asked, by id.",
    ),
    PersonalData(
        "action under your authority",
        ("operations.actor_id",),
        "select c.slug || ' ' || o.kind || ' ' || o.state as k, c.slug as club, o.kind, o.state, count(*) as actions,"
        " min(o.due_at) as first_due_at, max(o.due_at) as last_due_at"
        " from operations o join clubs c on c.id = o.club_id where o.actor_id = :person group by 1, 2, 3, 4",
        kept="The ledger's truth: under whose authority it was sent, by id.",
    ),
    PersonalData(
        "action edited",
        ("operation_revisions.actor_id", "operation_revisions.edited_by"),
        "select r.operation_id || ' ' || r.revision as k, c.slug as club, r.revision,"
        " r.actor_id = :person as under_your_authority, r.edited_by = :person as edited_by_you, r.due_at, r.edited_at"
        " from operation_revisions r join clubs c on c.id = r.club_id where :person in (r.actor_id, r.edited_by)",
        kept="The ledger's truth: what it said before an edit, under whose authority, and who changed it, by id.",
    ),
    PersonalData(
        "notice about an action of yours",
        ("operation_notices.actor_id",),
        "select n.club_id || ' ' || n.id as k, c.slug as club, n.outcome, n.created_at"
        " from operation_notices n join clubs c on c.id = n.club_id where n.actor_id = :person",
        kept="It says what the action says: that it ended badly, under whose authority, by id.",
    ),
    PersonalData(
        "notice you dismissed",
        ("operation_notice_reads.person_id",),
        "select r.club_id || ' ' || r.notice_id as k, c.slug as club, r.read_at"
        " from operation_notice_reads r join clubs c on c.id = r.club_id where r.person_id = :person",
        _reads,
    ),
    PersonalData(
        "mail about actions",
        ("operation_digests.person_id",),
        "select d.id::text as k, c.slug as club, d.outcome, d.created_at"
        " from operation_digests d join clubs c on c.id = d.club_id where d.person_id = :person",
        kept="That it was sent, by id: so that it is not sent again.",
    ),
    PersonalData(
        "finding about an unknown outcome",
        ("operation_findings.settled_by",),
        "select s.id::text as k, c.slug as club, s.verdict, s.note, s.settled_at"
        " from operation_findings s join clubs c on c.id = s.club_id where s.settled_by = :person",
        kept="The ledger's truth: who found out what, by id.",
    ),
    PersonalData(
        "recipient list you made or changed",
        ("recipient_lists.created_by", "recipient_lists.updated_by"),
        "select l.id::text as k, c.slug as club, l.name, l.created_by = :person as made_by_you,"
        " l.updated_by = :person as last_changed_by_you, l.created_at, l.updated_at"
        " from recipient_lists l join clubs c on c.id = l.club_id where :person in (l.created_by, l.updated_by)",
        kept="The club's record of who made its list, by id.",
    ),
    PersonalData(
        "draft of a post",
        ("post_drafts.created_by",),
        "select d.club_id || ' ' || d.id as k, c.slug as club, d.fields, d.schedule, d.created_at, d.updated_at"
        " from post_drafts d join clubs c on c.id = d.club_id where d.created_by = :person",
        _drafts,
    ),
)
