"""Telemetry: the raw aggregates of a club's group, how completely they were collected, and the group's audit log
without the people in it.

Nothing in this room names a person: a sample that would is refused as a whole, and a line of the log holds what
happened and when. Charts and movement are made of these rows, they are not kept here. Missing time is never zero: what
was not observed has a coverage that says so (``states.py``).
"""
