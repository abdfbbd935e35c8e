-- Events, batches, tickets and keys. The columns are those of ../sqlite; only the types, the
-- collations and the counting triggers differ. Ids and texts are TEXT, times are milliseconds since
-- 1970, money is a decimal TEXT with its currency.
--
-- Ids are compared byte by byte (collation "C"): it is faster, and their order is the same as in
-- Rust and in SQLite.

CREATE TABLE events (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    location TEXT NOT NULL,
    starts_at BIGINT,
    time_zone TEXT NOT NULL,
    currency TEXT NOT NULL,
    primary_color TEXT NOT NULL,
    secondary_color TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX events_of_owner ON events (owner, id);

-- The counters are written by the triggers below and by nothing else.
CREATE TABLE batches (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id),
    owner TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C",
    idempotency_request TEXT COLLATE "C",
    total BIGINT NOT NULL DEFAULT 0,
    completed BIGINT NOT NULL DEFAULT 0,
    failed BIGINT NOT NULL DEFAULT 0,
    voided BIGINT NOT NULL DEFAULT 0,
    revision BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (owner, idempotency_key),
    CHECK ((idempotency_key IS NULL) = (idempotency_request IS NULL)),
    CHECK (completed >= 0 AND failed >= 0 AND voided >= 0 AND completed + failed + voided <= total)
);

CREATE INDEX batches_of_event ON batches (event_id);
CREATE INDEX batches_by_change ON batches (updated_at, id);

CREATE TABLE tickets (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id),
    batch_id TEXT COLLATE "C" NOT NULL REFERENCES batches (id),
    owner TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    name TEXT NOT NULL,
    email TEXT,
    seat TEXT,
    price_amount TEXT,
    price_currency TEXT,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'completed', 'failed', 'void')),
    error TEXT,
    pdf_fingerprint TEXT,
    pdf_size BIGINT,
    pdf_checksum TEXT,
    processed_by TEXT,
    processed_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX tickets_of_owner ON tickets (owner, id);
CREATE INDEX tickets_of_event ON tickets (event_id, id);
CREATE INDEX tickets_of_batch ON tickets (batch_id, id);
CREATE INDEX tickets_pending ON tickets (id, updated_at) WHERE status = 'pending';

CREATE TABLE keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    role TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE INDEX keys_by_hash ON keys (hash);

-- A batch counts its tickets: whoever writes tickets, whichever way, moves the counters in the same
-- statement, so the two cannot drift apart.
--
-- One run per statement, not per row: ten thousand updates of one batch in one transaction would
-- leave ten thousand dead versions of it. The batches are taken in the order of their ids, so that
-- two statements that touch the same batches cannot wait for each other in a circle.
CREATE FUNCTION count_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Which of the two transition tables exist depends on the operation.
    changes CONSTANT TEXT := CASE TG_OP
        WHEN 'INSERT' THEN 'SELECT 1 AS n, batch_id, status, updated_at FROM added'
        WHEN 'DELETE' THEN 'SELECT -1 AS n, batch_id, status, NULL::BIGINT AS updated_at FROM removed'
        ELSE 'SELECT 1 AS n, batch_id, status, updated_at FROM added
              UNION ALL
              SELECT -1, batch_id, status, NULL FROM removed'
    END;
    delta RECORD;
BEGIN
    FOR delta IN EXECUTE '
        SELECT batch_id,
               SUM(n) AS total,
               SUM(CASE WHEN status = ''completed'' THEN n ELSE 0 END) AS completed,
               SUM(CASE WHEN status = ''failed'' THEN n ELSE 0 END) AS failed,
               SUM(CASE WHEN status = ''void'' THEN n ELSE 0 END) AS voided,
               MAX(updated_at) AS updated_at
        FROM (' || changes || ') AS change
        GROUP BY batch_id
        ORDER BY batch_id'
    LOOP
        UPDATE batches
        SET total = batches.total + delta.total,
            completed = batches.completed + delta.completed,
            failed = batches.failed + delta.failed,
            voided = batches.voided + delta.voided,
            revision = batches.revision + 1,
            updated_at = GREATEST(batches.updated_at, delta.updated_at)
        WHERE id = delta.batch_id
          -- An update that leaves every status as it was leaves the batch as it was.
          AND (delta.total <> 0 OR delta.completed <> 0 OR delta.failed <> 0 OR delta.voided <> 0);
    END LOOP;
    RETURN NULL;
END
$$;

CREATE TRIGGER count_added_tickets AFTER INSERT ON tickets
REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_tickets();

CREATE TRIGGER count_changed_tickets AFTER UPDATE ON tickets
REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_tickets();

CREATE TRIGGER count_removed_tickets AFTER DELETE ON tickets
REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION count_tickets();
