-- Check-in: lists, gates, devices, the state of tickets on lists, and the log of scans.
-- The columns are those of ../sqlite.

-- One row an event: the number of its last change that scanners have to know. A change takes the next number
-- in its own transaction, so numbers are in the order of commits.
CREATE TABLE check_in_counters (
    event_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL DEFAULT 0,
    -- The last change of a list: a scanner that is older needs everything again.
    lists_seq BIGINT NOT NULL DEFAULT 0
);

INSERT INTO check_in_counters (event_id) SELECT id FROM events;

CREATE FUNCTION count_check_ins_of_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO check_in_counters (event_id) VALUES (NEW.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER check_in_counts_for_event AFTER INSERT ON events
FOR EACH ROW EXECUTE FUNCTION count_check_ins_of_event();

-- The built-in list of an event has the event's id, and a row only if it was changed.
CREATE TABLE check_in_lists (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    opens_at BIGINT,
    closes_at BIGINT,
    -- 0: without limit.
    entries BIGINT NOT NULL CHECK (entries >= 0),
    reentry BIGINT NOT NULL CHECK (reentry IN (0, 1)),
    -- JSON lists; NULL: all.
    batches TEXT,
    seats TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX check_in_lists_of_event ON check_in_lists (event_id, id);

CREATE TABLE check_in_gates (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX check_in_gates_of_event ON check_in_gates (event_id, id);

-- What a scanner's key has besides what every key has.
CREATE TABLE check_in_devices (
    key_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    gate_id TEXT COLLATE "C",
    list_id TEXT COLLATE "C",
    -- The hash of a code that works once, and until when it works.
    enrol_hash TEXT COLLATE "C",
    enrol_until BIGINT,
    last_seen_at BIGINT,
    unsent BIGINT
);

CREATE INDEX check_in_devices_of_event ON check_in_devices (event_id, key_id);
CREATE INDEX check_in_devices_by_code ON check_in_devices (enrol_hash) WHERE enrol_hash IS NOT NULL;

-- The state of a ticket on a list, and its last entry.
CREATE TABLE check_in_admissions (
    list_id TEXT COLLATE "C" NOT NULL,
    ticket_id TEXT COLLATE "C" NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    serial BIGINT NOT NULL,
    entered BIGINT NOT NULL CHECK (entered >= 0),
    exited BIGINT NOT NULL CHECK (exited >= 0),
    last_scan TEXT COLLATE "C",
    seq BIGINT NOT NULL,
    PRIMARY KEY (list_id, ticket_id)
);

CREATE INDEX check_in_admissions_of_ticket ON check_in_admissions (ticket_id);
CREATE INDEX check_in_admissions_by_change ON check_in_admissions (event_id, seq);

-- The log: every attempt, refused ones too. Rows outlive their ticket.
CREATE TABLE check_in_scans (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    list_id TEXT COLLATE "C" NOT NULL,
    gate_id TEXT COLLATE "C",
    key_id TEXT COLLATE "C",
    -- Whose nonces these are: a key, or a user without one.
    actor TEXT COLLATE "C" NOT NULL,
    device_name TEXT NOT NULL,
    nonce TEXT COLLATE "C" NOT NULL,
    -- Hash of what was shown: the same nonce with another ticket is a mistake of the client.
    asked TEXT COLLATE "C" NOT NULL,
    ticket_id TEXT COLLATE "C",
    batch_id TEXT COLLATE "C",
    serial BIGINT,
    name TEXT,
    seat TEXT,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('entry', 'exit')),
    result TEXT COLLATE "C" NOT NULL,
    -- The moment of the scan by the server's clock.
    at BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    device_at BIGINT,
    offline BIGINT NOT NULL,
    -- Whether the guest passed, so that the ticket's state counts this scan.
    counted BIGINT NOT NULL,
    conflict BIGINT NOT NULL,
    conflicts_with TEXT COLLATE "C",
    -- The entry before, of a ticket that was redeemed already.
    previous TEXT COLLATE "C",
    entries BIGINT,
    entries_allowed BIGINT,
    inside BIGINT,
    undone_at BIGINT,
    note TEXT,
    UNIQUE (actor, nonce, event_id)
);

CREATE UNIQUE INDEX check_in_scans_in_order ON check_in_scans (event_id, seq);
CREATE INDEX check_in_scans_by_time ON check_in_scans (event_id, at);
CREATE INDEX check_in_scans_of_ticket ON check_in_scans (ticket_id, seq);
CREATE INDEX check_in_scans_in_conflict ON check_in_scans (event_id, seq) WHERE conflict = 1;

-- The last change of a ticket that makes paper invalid.
CREATE TABLE check_in_changes (
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    serial BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (event_id, serial)
);

CREATE INDEX check_in_changes_in_order ON check_in_changes (event_id, seq);

-- A row of this event's counter is locked until the transaction ends. Transactions lock in one order: the
-- event, tickets, this counter, batches.
CREATE FUNCTION note_ticket_for_check_in() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ticket tickets%ROWTYPE;
    next BIGINT;
BEGIN
    IF TG_OP = 'DELETE' THEN
        ticket := OLD;
    ELSE
        ticket := NEW;
    END IF;
    UPDATE check_in_counters SET seq = seq + 1 WHERE event_id = ticket.event_id RETURNING seq INTO next;
    -- No counter: the event is being deleted with everything.
    IF next IS NOT NULL THEN
        IF TG_OP = 'DELETE' THEN
            DELETE FROM check_in_admissions WHERE ticket_id = ticket.id;
        END IF;
        INSERT INTO check_in_changes (event_id, serial, seq) VALUES (ticket.event_id, ticket.serial, next)
        ON CONFLICT (event_id, serial) DO UPDATE SET seq = excluded.seq;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER check_in_notes_changed_ticket AFTER UPDATE OF status, generation ON tickets
FOR EACH ROW
WHEN (OLD.generation <> NEW.generation OR (NEW.status = 'void') <> (OLD.status = 'void'))
EXECUTE FUNCTION note_ticket_for_check_in();

CREATE TRIGGER check_in_notes_deleted_ticket AFTER DELETE ON tickets
FOR EACH ROW EXECUTE FUNCTION note_ticket_for_check_in();

CREATE FUNCTION note_key_for_check_in() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE check_in_counters SET seq = seq + 1 WHERE event_id = NEW.event_id;
    RETURN NULL;
END
$$;

-- At the end of the transaction: whoever revokes a key goes on to lock tickets.
CREATE CONSTRAINT TRIGGER check_in_notes_new_key AFTER INSERT ON ticket_keys
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION note_key_for_check_in();

CREATE CONSTRAINT TRIGGER check_in_notes_revoked_key AFTER UPDATE OF revoked_at ON ticket_keys
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL)
EXECUTE FUNCTION note_key_for_check_in();
