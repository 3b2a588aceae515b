"""The one clock: ``lastcall_now()`` in the database writes and judges every deadline, lease and expiry."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import DateTime, ScalarSelect, func, select

NOW: ScalarSelect[datetime] = select(
    func.lastcall_now(type_=DateTime(timezone=True)),
).scalar_subquery()
"""*Now* for a statement. The function is VOLATILE: only as ``(select lastcall_now())`` is it called once and
can an index be used with it. A routine calls it bare, once, into a variable, after it took its locks."""
