"""Clubs, their staff with roles and permissions, the gate that guards authority, and the activity log."""
