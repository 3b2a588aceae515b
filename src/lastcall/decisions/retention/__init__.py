"""Retention: what becomes of an item that nobody decides.

A *kind* of item is one file in ``kinds/``. Whoever writes a fact of a kind's candidate rule calls
``due.refresh(tx, club_id, ids, kind=…)`` in the same transaction, and ``due.announce`` before an insert.
"""
