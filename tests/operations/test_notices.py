"""Who is told of what did not end well, and until when."""

from __future__ import annotations
