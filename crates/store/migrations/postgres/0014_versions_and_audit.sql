-- Versions of gates, keys and blocks, and the audit log. The columns are those of ../sqlite.
-- Times are milliseconds since 1970. A row of an older program has the version 0 until it changes.

ALTER TABLE check_in_gates ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE check_in_blocks ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;

UPDATE check_in_gates SET updated_at = created_at;
UPDATE check_in_blocks SET updated_at = created_at;
UPDATE keys SET updated_at = created_at;

-- What was changed, by whom. An entry is written before its change and settled after it.
CREATE TABLE audit_entries (
    -- A UUID of version 7: entries sort by the time they were made.
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    settled_at BIGINT,
    -- The status of the answer; NULL: the process ended before it was known.
    status BIGINT,
    actor TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C",
    key_name TEXT,
    -- 'api' or 'command'.
    origin TEXT COLLATE "C" NOT NULL,
    address TEXT,
    request_id TEXT COLLATE "C",
    operation TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C",
    record TEXT COLLATE "C",
    event_id TEXT COLLATE "C",
    -- The record as the API shows it, as JSON; NULL: there was or is none.
    before_change TEXT,
    after_change TEXT,
    -- Refusals like this one that were not written, because there were too many.
    left_out BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX audit_entries_of_actor ON audit_entries (actor, id);
CREATE INDEX audit_entries_of_operation ON audit_entries (operation, id);
CREATE INDEX audit_entries_of_record ON audit_entries (record, id) WHERE record IS NOT NULL;
CREATE INDEX audit_entries_of_event ON audit_entries (event_id, id) WHERE event_id IS NOT NULL;
CREATE INDEX audit_entries_refused ON audit_entries (id) WHERE status = 403;

CREATE FUNCTION audit_entries_are_settled_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status IS NOT NULL OR NEW.id <> OLD.id OR NEW.at <> OLD.at OR NEW.actor <> OLD.actor
        OR NEW.role <> OLD.role OR NEW.operation <> OLD.operation OR NEW.origin <> OLD.origin THEN
        RAISE EXCEPTION 'an entry of the audit log is settled once and never changed again';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER audit_entries_are_settled_once BEFORE UPDATE ON audit_entries
FOR EACH ROW EXECUTE FUNCTION audit_entries_are_settled_once();
