"""Database: engine, transactions with messages, the database clock, tenant tables, migrations, embedded
server."""
