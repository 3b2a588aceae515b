"""The HTTP API for programs that act for a person, ``/api/v1``: parse, call one service, render."""
