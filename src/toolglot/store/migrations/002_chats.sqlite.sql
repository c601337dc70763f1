-- What NOTIFY is for PostgreSQL: other processes poll the versions.

CREATE TABLE changes (
    topic TEXT PRIMARY KEY,
    version INTEGER NOT NULL
);
