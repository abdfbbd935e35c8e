-- Events of the feed that are not told yet. The columns are those of ../sqlite.
-- `seq` is taken while the changed records are locked: of two changes of one record, the later has the larger number.
CREATE TABLE outbox (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    event_id TEXT,
    batch_id TEXT,
    data TEXT NOT NULL,
    at BIGINT NOT NULL
);
