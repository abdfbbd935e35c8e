-- Check-in: lists, gates, devices, the state of tickets on lists, and the log of scans.
-- The columns are those of ../postgres.

-- One row an event: the number of its last change that scanners have to know. A change takes the next number
-- in its own transaction, so numbers are in the order of commits.
CREATE TABLE check_in_counters (
    event_id TEXT NOT NULL PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL DEFAULT 0,
    -- The last change of a list: a scanner that is older needs everything again.
    lists_seq INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO check_in_counters (event_id) SELECT id FROM events;

CREATE TRIGGER check_in_counts_for_event AFTER INSERT ON events
BEGIN
    INSERT INTO check_in_counters (event_id) VALUES (NEW.id);
END;

-- The built-in list of an event has the event's id, and a row only if it was changed.
CREATE TABLE check_in_lists (
    id TEXT NOT NULL PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    opens_at INTEGER,
    closes_at INTEGER,
    -- 0: without limit.
    entries INTEGER NOT NULL CHECK (entries >= 0),
    reentry INTEGER NOT NULL CHECK (reentry IN (0, 1)),
    -- JSON lists; NULL: all.
    batches TEXT,
    seats TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX check_in_lists_of_event ON check_in_lists (event_id, id);

CREATE TABLE check_in_gates (
    id TEXT NOT NULL PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX check_in_gates_of_event ON check_in_gates (event_id, id);

-- What a scanner's key has besides what every key has.
CREATE TABLE check_in_devices (
    key_id TEXT NOT NULL PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE,
    event_id TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    gate_id TEXT,
    list_id TEXT,
    -- The hash of a code that works once, and until when it works.
    enrol_hash TEXT,
    enrol_until INTEGER,
    last_seen_at INTEGER,
    unsent INTEGER
) STRICT;

CREATE INDEX check_in_devices_of_event ON check_in_devices (event_id, key_id);
CREATE INDEX check_in_devices_by_code ON check_in_devices (enrol_hash) WHERE enrol_hash IS NOT NULL;

-- The state of a ticket on a list, and its last entry.
CREATE TABLE check_in_admissions (
    list_id TEXT NOT NULL,
    ticket_id TEXT NOT NULL,
    event_id TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    serial INTEGER NOT NULL,
    entered INTEGER NOT NULL CHECK (entered >= 0),
    exited INTEGER NOT NULL CHECK (exited >= 0),
    last_scan TEXT,
    seq INTEGER NOT NULL,
    PRIMARY KEY (list_id, ticket_id)
) STRICT;

CREATE INDEX check_in_admissions_of_ticket ON check_in_admissions (ticket_id);
CREATE INDEX check_in_admissions_by_change ON check_in_admissions (event_id, seq);

-- The log: every attempt, refused ones too. Rows outlive their ticket.
CREATE TABLE check_in_scans (
    id TEXT NOT NULL PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    list_id TEXT NOT NULL,
    gate_id TEXT,
    key_id TEXT,
    -- Whose nonces these are: a key, or a user without one.
    actor TEXT NOT NULL,
    device_name TEXT NOT NULL,
    nonce TEXT NOT NULL,
    -- Hash of what was shown: the same nonce with another ticket is a mistake of the client.
    asked TEXT NOT NULL,
    ticket_id TEXT,
    batch_id TEXT,
    serial INTEGER,
    name TEXT,
    seat TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('entry', 'exit')),
    result TEXT NOT NULL,
    -- The moment of the scan by the server's clock.
    at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    device_at INTEGER,
    offline INTEGER NOT NULL,
    -- Whether the guest passed, so that the ticket's state counts this scan.
    counted INTEGER NOT NULL,
    conflict INTEGER NOT NULL,
    conflicts_with TEXT,
    -- The entry before, of a ticket that was redeemed already.
    previous TEXT,
    entries INTEGER,
    entries_allowed INTEGER,
    inside INTEGER,
    undone_at INTEGER,
    note TEXT,
    UNIQUE (actor, nonce, event_id)
) STRICT;

CREATE UNIQUE INDEX check_in_scans_in_order ON check_in_scans (event_id, seq);
CREATE INDEX check_in_scans_by_time ON check_in_scans (event_id, at);
CREATE INDEX check_in_scans_of_ticket ON check_in_scans (ticket_id, seq);
CREATE INDEX check_in_scans_in_conflict ON check_in_scans (event_id, seq) WHERE conflict = 1;

-- The last change of a ticket that makes paper invalid.
CREATE TABLE check_in_changes (
    event_id TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    serial INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (event_id, serial)
) STRICT;

CREATE INDEX check_in_changes_in_order ON check_in_changes (event_id, seq);

CREATE TRIGGER check_in_notes_changed_ticket AFTER UPDATE OF status, generation ON tickets
WHEN OLD.generation <> NEW.generation OR (NEW.status = 'void') <> (OLD.status = 'void')
BEGIN
    UPDATE check_in_counters SET seq = seq + 1 WHERE event_id = NEW.event_id;
    INSERT INTO check_in_changes (event_id, serial, seq)
    SELECT event_id, NEW.serial, seq FROM check_in_counters WHERE event_id = NEW.event_id
    ON CONFLICT (event_id, serial) DO UPDATE SET seq = excluded.seq;
END;

CREATE TRIGGER check_in_notes_deleted_ticket AFTER DELETE ON tickets
BEGIN
    DELETE FROM check_in_admissions WHERE ticket_id = OLD.id;
    UPDATE check_in_counters SET seq = seq + 1 WHERE event_id = OLD.event_id;
    INSERT INTO check_in_changes (event_id, serial, seq)
    SELECT event_id, OLD.serial, seq FROM check_in_counters WHERE event_id = OLD.event_id
    ON CONFLICT (event_id, serial) DO UPDATE SET seq = excluded.seq;
END;

CREATE TRIGGER check_in_notes_new_key AFTER INSERT ON ticket_keys
BEGIN
    UPDATE check_in_counters SET seq = seq + 1 WHERE event_id = NEW.event_id;
END;

CREATE TRIGGER check_in_notes_revoked_key AFTER UPDATE OF revoked_at ON ticket_keys
WHEN OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL
BEGIN
    UPDATE check_in_counters SET seq = seq + 1 WHERE event_id = NEW.event_id;
END;
