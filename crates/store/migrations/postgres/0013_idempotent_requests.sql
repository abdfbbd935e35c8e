-- Requests that a client may send twice, with the answer to the first. The columns are those of ../sqlite.
-- Times are milliseconds since 1970. A record without body_hash is in flight: its holder carries it out, until held_until.
CREATE TABLE idempotent_requests (
    owner TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    -- Hash of operation, path and query.
    target TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    held_until BIGINT NOT NULL,
    body_hash TEXT COLLATE "C",
    -- Encrypted; NULL if it is not kept.
    answer BYTEA,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE INDEX idempotent_requests_by_end ON idempotent_requests (expires_at);
