-- Requests, the sessions they belong to, and bodies on demand.

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    created REAL NOT NULL,
    used REAL NOT NULL,
    turns INTEGER NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    client_session TEXT NOT NULL
);
CREATE INDEX sessions_by_owner ON sessions (owner, id);
CREATE INDEX sessions_by_use ON sessions (used);

CREATE TABLE records (
    id TEXT PRIMARY KEY,
    request_id TEXT NOT NULL,
    owner BLOB NOT NULL,
    session TEXT NOT NULL,
    time REAL NOT NULL,
    wire TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    status INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    data BLOB NOT NULL,
    size INTEGER NOT NULL
);
CREATE INDEX records_by_request ON records (request_id);
CREATE INDEX records_by_owner ON records (owner, id);
CREATE INDEX records_by_session ON records (session, id);
CREATE INDEX records_by_model ON records (model, id);
CREATE INDEX records_by_outcome ON records (outcome, id);
-- with the size, so that the sizes can be added up from the index alone
CREATE INDEX records_by_time ON records (time, size);

CREATE TABLE bodies (
    record TEXT NOT NULL REFERENCES records (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (record, kind)
);
