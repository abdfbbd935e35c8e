-- Signed tickets: keys for each event, and a serial, a generation and a signing key for each ticket.
-- The columns are those of ../sqlite.

-- The last serial that was given out for the event's tickets.
ALTER TABLE events ADD COLUMN last_serial BIGINT NOT NULL DEFAULT 0;

ALTER TABLE tickets
    ADD COLUMN serial BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN generation BIGINT NOT NULL DEFAULT 1,
    -- The number of the key that signs its token. NULL only for tickets that are older than this
    -- migration, until the next start gives their event a key: SQL cannot make one.
    ADD COLUMN signing_key BIGINT;

UPDATE tickets SET serial = numbered.serial
FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY id) AS serial FROM tickets) AS numbered
WHERE tickets.id = numbered.id;

UPDATE events SET last_serial =
    (SELECT COALESCE(MAX(serial), 0) FROM tickets WHERE tickets.event_id = events.id);

CREATE UNIQUE INDEX tickets_by_serial ON tickets (event_id, serial);
CREATE INDEX tickets_without_key ON tickets (event_id) WHERE signing_key IS NULL;

-- The public half as hexadecimal text; the seed of the private half encrypted, bound to event and
-- number (see src/ticket_keys/vault.rs).
CREATE TABLE ticket_keys (
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id),
    number BIGINT NOT NULL CHECK (number BETWEEN 1 AND 4294967295),
    public_key TEXT COLLATE "C" NOT NULL,
    sealed_seed TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    PRIMARY KEY (event_id, number)
);

-- One row: something known, encrypted with the secret that all seeds are encrypted with. A server
-- with another secret notices it at its start, not when the first ticket cannot be signed.
CREATE TABLE ticket_secret (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    sealed TEXT COLLATE "C" NOT NULL
);
