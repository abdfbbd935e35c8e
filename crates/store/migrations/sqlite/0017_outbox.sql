-- Events of the feed that are not told yet. The columns are those of ../postgres.
-- `seq` is in the order of commits (SQLite has one writer) and is never used twice.
CREATE TABLE outbox (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    event_id TEXT,
    batch_id TEXT,
    data TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
