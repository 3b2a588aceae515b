"""An invite may be used several times: each acceptance is a row of its own, and makes at most one request."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0108_invite_uses"
down_revision = "0105_retention"
branch_labels = None
depends_on = None


def upgrade() -> None:
    extend_invites()
    extend_join_requests()
    create_invite_uses()
    move_acceptances()


def extend_invites() -> None:
    op.add_column("invites", sa.Column("max_uses", sa.Integer(), server_default=sa.text("1"), nullable=False))
    op.add_column("invites", sa.Column("uses", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column(
        "invites", sa.Column("agent_grants", ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False)
    )
    op.execute("update invites set uses = 1 where accepted_at is not null")
    op.create_check_constraint("max_uses", "invites", "max_uses between 1 and 100")
    op.create_check_constraint("uses", "invites", "uses between 0 and max_uses")
    op.create_check_constraint("used_up", "invites", "(accepted_at is null) = (uses < max_uses)")
    op.create_check_constraint("email_once", "invites", "email is null or max_uses = 1")
    op.create_check_constraint("agent_grants", "invites", "kind <> 'person' or cardinality(agent_grants) = 0")


def extend_join_requests() -> None:
    op.add_column(
        "join_requests", sa.Column("use_number", sa.Integer(), server_default=sa.text("1"), nullable=False)
    )
    op.add_column("join_requests", sa.Column("agent_description", sa.Text(), nullable=True))
    op.create_check_constraint("use_number", "join_requests", "use_number between 1 and 100")
    op.create_check_constraint(
        "agent_description", "join_requests", "agent_description is null or subject_kind = 'agent'"
    )
    op.drop_constraint("join_requests_club_id_invite_id_key", "join_requests")
    op.create_unique_constraint(
        "join_requests_club_id_invite_id_use_number_key",
        "join_requests",
        ["club_id", "invite_id", "use_number"],
    )


def create_invite_uses() -> None:
    op.create_table(
        "invite_uses",
        sa.Column("club_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("invite_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.Column(
            "used_at", sa.DateTime(timezone=True), server_default=sa.text("lastcall_now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("club_id", "id", name=op.f("invite_uses_pkey")),
        sa.ForeignKeyConstraint(
            ["club_id", "invite_id"],
            ["invites.club_id", "invites.id"],
            name=op.f("invite_uses_club_id_invite_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["club_id", "request_id"],
            ["join_requests.club_id", "join_requests.id"],
            name=op.f("invite_uses_club_id_request_id_fkey"),
            ondelete="SET NULL (request_id)",
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("invite_uses_person_id_fkey")),
        sa.UniqueConstraint(
            "club_id", "invite_id", "number", name=op.f("invite_uses_club_id_invite_id_number_key")
        ),
        sa.CheckConstraint("number between 1 and 100", name=op.f("invite_uses_number_check")),
    )
    is_person, is_asked = sa.text("person_id is not null"), sa.text("request_id is not null")
    op.create_index(
        "invite_uses_person_key",
        "invite_uses",
        ["club_id", "invite_id", "person_id"],
        unique=True,
        postgresql_where=is_person,
    )
    op.create_index("invite_uses_person_id_idx", "invite_uses", ["person_id"], postgresql_where=is_person)
    op.create_index(
        "invite_uses_club_id_request_id_idx",
        "invite_uses",
        ["club_id", "request_id"],
        postgresql_where=is_asked,
    )


def move_acceptances() -> None:
    """Who accepted stands in the uses from now on. The request is the invite's own, else that person's last."""
    op.execute("""
        insert into invite_uses (club_id, id, invite_id, number, person_id, request_id, used_at)
        select i.club_id, gen_random_uuid(), i.id, 1, i.accepted_by,
            (select j.id from join_requests j
             where j.club_id = i.club_id
               and (j.invite_id = i.id or j.person_id = i.accepted_by)
             order by j.invite_id = i.id desc, j.id desc
             limit 1),
            i.accepted_at
        from invites i
        where i.accepted_at is not null
    """)
    op.drop_column("invites", "accepted_by")
