-- A record changes fewer pages. An index on values without an order, such as hashes, is a page of its own for each record.

-- the latest nodes of a key are those of its latest sessions, which nodes_by_key has in order
DROP INDEX nodes_by_position;
DROP INDEX nodes_by_chat;
CREATE INDEX nodes_by_chat ON nodes (chat) WHERE chat IS NOT NULL;

-- ids are in the order of time
DROP INDEX records_by_time;
DROP INDEX records_by_outcome;
CREATE INDEX records_by_outcome ON records (outcome, id) WHERE outcome <> 'ok';

-- without client keys all rows have the empty owner
DROP INDEX records_by_owner;
CREATE INDEX records_by_owner ON records (owner, id) WHERE length(owner) > 0;
DROP INDEX sessions_by_owner;
CREATE INDEX sessions_by_owner ON sessions (owner, id) WHERE length(owner) > 0;
