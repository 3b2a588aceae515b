"""People, their one-time sign-in links and sessions, and the audit of both. It knows nothing of clubs."""
