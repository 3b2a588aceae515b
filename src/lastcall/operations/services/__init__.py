"""The commands: everything that changes operations."""
