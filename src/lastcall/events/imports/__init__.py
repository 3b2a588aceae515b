"""Calendars of others: read within bounds into entries, and compared with the club's events. Nothing here writes an
event (EVT-02)."""
