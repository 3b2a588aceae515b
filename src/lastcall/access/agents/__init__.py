"""Agents: programs that staff let into one club, each with its own key and grants."""
