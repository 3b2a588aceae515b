"""Commands on events."""
