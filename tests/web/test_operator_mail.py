"""Operators, and nobody else, see what was not delivered."""

from __future__ import annotations

from collections.abc import Callable

from tests.web.conftest import Visitor, World

from lastcall.db.ids import new_id

ROW = "insert into outgoing_mail (id, kind, address, state, error) values ($1, 'sign_in', $2, $3, $4)"


async def test_what_was_not_delivered_is_listed_page_by_page_and_escaped(
    world: World, visit: Callable[..., Visitor]
) -> None:
    operator = visit("operator")
    empty = await operator.get("/operator/mail")
    assert "Nothing is wrong" in empty.text
    assert "smtp://127.0.0.1" in empty.text
    for number in range(51):
        error = "550 <script>alert(1)</script>" if number == 50 else "550 no such user"
        await world.db.pool.execute(ROW, new_id(), f"p{number}@example.org", "failed", error)
    await world.db.pool.execute(ROW, new_id(), "q@example.org", "unknown", None)
    await world.db.pool.execute(
        "insert into outgoing_mail (id, kind, address, state, sent_at) values ($1, 'sign_in', $2, 'sent', now())",
        new_id(),
        "arrived@example.org",
    )
    first = (await operator.get("/operator/mail")).text
    assert "arrived@example.org" not in first
    assert "Outcome unknown" in first
    assert "&lt;script&gt;alert(1)" in first
    assert "<script>alert" not in first
    assert "p1@example.org" not in first
    older = first.partition("/operator/mail?after=")[2].partition('"')[0]
    second = (await operator.get(f"/operator/mail?after={older}")).text
    assert [name for name in ("p0@", "p1@", "p2@", "q@") if f">{name}" in second] == ["p0@", "p1@"]
    assert (await operator.get("/operator/mail?after=nonsense")).status_code == 422
    for other in ("owner", "staff"):
        assert (await visit(other).get("/operator/mail")).status_code == 404
