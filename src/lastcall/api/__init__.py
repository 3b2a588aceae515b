"""The HTTP API for programs: thin, over services, errors as problem documents."""
