-- Versions of gates, keys and blocks, and the audit log. The columns are those of ../postgres.
-- Times are milliseconds since 1970. A row of an older program has the version 0 until it changes.

ALTER TABLE check_in_gates ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE check_in_blocks ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;

UPDATE check_in_gates SET updated_at = created_at;
UPDATE check_in_blocks SET updated_at = created_at;
UPDATE keys SET updated_at = created_at;

-- What was changed, by whom. An entry is written before its change and settled after it.
CREATE TABLE audit_entries (
    -- A UUID of version 7: entries sort by the time they were made.
    id TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    settled_at INTEGER,
    -- The status of the answer; NULL: the process ended before it was known.
    status INTEGER,
    actor TEXT NOT NULL,
    role TEXT NOT NULL,
    key_id TEXT,
    key_name TEXT,
    -- 'api' or 'command'.
    origin TEXT NOT NULL,
    address TEXT,
    request_id TEXT,
    operation TEXT NOT NULL,
    kind TEXT,
    record TEXT,
    event_id TEXT,
    -- The record as the API shows it, as JSON; NULL: there was or is none.
    before_change TEXT,
    after_change TEXT,
    -- Refusals like this one that were not written, because there were too many.
    left_out INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX audit_entries_of_actor ON audit_entries (actor, id);
CREATE INDEX audit_entries_of_operation ON audit_entries (operation, id);
CREATE INDEX audit_entries_of_record ON audit_entries (record, id) WHERE record IS NOT NULL;
CREATE INDEX audit_entries_of_event ON audit_entries (event_id, id) WHERE event_id IS NOT NULL;
CREATE INDEX audit_entries_refused ON audit_entries (id) WHERE status = 403;

CREATE TRIGGER audit_entries_are_settled_once BEFORE UPDATE ON audit_entries
WHEN OLD.status IS NOT NULL OR NEW.id <> OLD.id OR NEW.at <> OLD.at OR NEW.actor <> OLD.actor
    OR NEW.role <> OLD.role OR NEW.operation <> OLD.operation OR NEW.origin <> OLD.origin
BEGIN
    SELECT RAISE(ABORT, 'an entry of the audit log is settled once and never changed again');
END;
