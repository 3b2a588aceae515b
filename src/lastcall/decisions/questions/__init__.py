"""Decisions: a question with options, answered by one of them before it expires."""
