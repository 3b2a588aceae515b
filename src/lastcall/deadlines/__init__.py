"""Quiet until due: every clock in the system is a saved deadline, and nothing runs before one or without one.

The room knows no domain. An *owner* knows how to find and settle what is due; the *scheduler* keeps one saved
deadline for each; a *signal* says that a deadline may have changed. How they work together, what they promise
and where that ends: ``docs/explanation/deadlines.md``.
"""
