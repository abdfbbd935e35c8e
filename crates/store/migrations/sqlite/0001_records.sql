-- Events, batches, tickets and keys. The columns are those of ../postgres; only the types, the
-- collations and the counting triggers differ. Ids and texts are TEXT, times are milliseconds since
-- 1970, money is a decimal TEXT with its currency.

CREATE TABLE events (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    location TEXT NOT NULL,
    starts_at INTEGER,
    time_zone TEXT NOT NULL,
    currency TEXT NOT NULL,
    primary_color TEXT NOT NULL,
    secondary_color TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX events_of_owner ON events (owner, id);

-- The counters are written by the triggers below and by nothing else.
CREATE TABLE batches (
    id TEXT NOT NULL PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events (id),
    owner TEXT NOT NULL,
    idempotency_key TEXT,
    idempotency_request TEXT,
    total INTEGER NOT NULL DEFAULT 0,
    completed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    voided INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (owner, idempotency_key),
    CHECK ((idempotency_key IS NULL) = (idempotency_request IS NULL)),
    CHECK (completed >= 0 AND failed >= 0 AND voided >= 0 AND completed + failed + voided <= total)
) STRICT;

CREATE INDEX batches_of_event ON batches (event_id);
CREATE INDEX batches_by_change ON batches (updated_at, id);

CREATE TABLE tickets (
    id TEXT NOT NULL PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events (id),
    batch_id TEXT NOT NULL REFERENCES batches (id),
    owner TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    email TEXT,
    seat TEXT,
    price_amount TEXT,
    price_currency TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'completed', 'failed', 'void')),
    error TEXT,
    pdf_fingerprint TEXT,
    pdf_size INTEGER,
    pdf_checksum TEXT,
    processed_by TEXT,
    processed_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX tickets_of_owner ON tickets (owner, id);
CREATE INDEX tickets_of_event ON tickets (event_id, id);
CREATE INDEX tickets_of_batch ON tickets (batch_id, id);
CREATE INDEX tickets_pending ON tickets (id, updated_at) WHERE status = 'pending';

CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL,
    owner TEXT NOT NULL,
    role TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE INDEX keys_by_hash ON keys (hash);

-- A batch counts its tickets: whoever writes a ticket, whichever way, moves the counters in the same
-- statement, so the two cannot drift apart.

CREATE TRIGGER count_added_ticket AFTER INSERT ON tickets
BEGIN
    UPDATE batches
    SET total = total + 1,
        completed = completed + (NEW.status = 'completed'),
        failed = failed + (NEW.status = 'failed'),
        voided = voided + (NEW.status = 'void'),
        revision = revision + 1,
        updated_at = MAX(updated_at, NEW.updated_at)
    WHERE id = NEW.batch_id;
END;

CREATE TRIGGER count_changed_ticket AFTER UPDATE OF status ON tickets
WHEN OLD.status <> NEW.status
BEGIN
    UPDATE batches
    SET completed = completed + (NEW.status = 'completed') - (OLD.status = 'completed'),
        failed = failed + (NEW.status = 'failed') - (OLD.status = 'failed'),
        voided = voided + (NEW.status = 'void') - (OLD.status = 'void'),
        revision = revision + 1,
        updated_at = MAX(updated_at, NEW.updated_at)
    WHERE id = NEW.batch_id;
END;

CREATE TRIGGER count_removed_ticket AFTER DELETE ON tickets
BEGIN
    UPDATE batches
    SET total = total - 1,
        completed = completed - (OLD.status = 'completed'),
        failed = failed - (OLD.status = 'failed'),
        voided = voided - (OLD.status = 'void'),
        revision = revision + 1
    WHERE id = OLD.batch_id;
END;

CREATE TRIGGER ticket_stays_in_its_batch BEFORE UPDATE OF batch_id ON tickets
WHEN OLD.batch_id <> NEW.batch_id
BEGIN
    SELECT RAISE(ABORT, 'a ticket never moves to another batch');
END;
