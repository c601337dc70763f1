-- Chats of stateful upstreams, the index of conversations, values kept for later requests, shared settings.

CREATE TABLE chats (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner BLOB NOT NULL,
    head TEXT NOT NULL,
    created REAL NOT NULL,
    used REAL NOT NULL,
    token INTEGER NOT NULL,
    holder TEXT NOT NULL,
    -- 0: not leased
    leased_until REAL NOT NULL
);
CREATE INDEX chats_by_session ON chats (session);
CREATE INDEX chats_by_use ON chats (used);

CREATE TABLE nodes (
    number INTEGER PRIMARY KEY,
    key BLOB NOT NULL,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- NULL: no chat
    chat TEXT REFERENCES chats (id) ON DELETE CASCADE,
    message TEXT NOT NULL,
    context BLOB NOT NULL,
    answer BLOB NOT NULL,
    size INTEGER NOT NULL
);
CREATE UNIQUE INDEX nodes_by_key ON nodes (key, session, coalesce(chat, ''), message);
CREATE INDEX nodes_by_session ON nodes (session);
CREATE INDEX nodes_by_chat ON nodes (chat);

CREATE TABLE kept (
    owner BLOB NOT NULL,
    key BLOB NOT NULL,
    value BLOB NOT NULL,
    expires REAL NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX kept_by_expiry ON kept (expires);

CREATE TABLE failures (
    address TEXT NOT NULL,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    evidence TEXT NOT NULL,
    learned REAL NOT NULL,
    expires REAL NOT NULL,
    PRIMARY KEY (address, model)
);

CREATE TABLE client_keys (
    name TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    created REAL NOT NULL,
    expires REAL NOT NULL
);

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    value BLOB NOT NULL
);
