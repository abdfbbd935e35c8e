-- Requests that a client may send twice, with the answer to the first. The columns are those of ../postgres.
-- Times are milliseconds since 1970. A record without body_hash is in flight: its holder carries it out, until held_until.
CREATE TABLE idempotent_requests (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    -- Hash of operation, path and query.
    target TEXT NOT NULL,
    holder TEXT NOT NULL,
    held_until INTEGER NOT NULL,
    body_hash TEXT,
    -- Encrypted; NULL if it is not kept.
    answer BLOB,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT;

CREATE INDEX idempotent_requests_by_end ON idempotent_requests (expires_at);
