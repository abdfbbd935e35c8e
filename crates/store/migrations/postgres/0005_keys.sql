-- What an API key is limited to, until when it is valid, and when it was last used. A key's label is its name.
-- Times are milliseconds since 1970. `queues` is a JSON list of names; NULL: all queues.

ALTER TABLE keys ADD COLUMN expires_at BIGINT;
ALTER TABLE keys ADD COLUMN last_used_at BIGINT;
ALTER TABLE keys ADD COLUMN last_used_from TEXT;
ALTER TABLE keys ADD COLUMN event_id TEXT REFERENCES events (id) ON DELETE CASCADE;
ALTER TABLE keys ADD COLUMN queues TEXT;

CREATE INDEX keys_of_owner ON keys (owner, id);
CREATE INDEX keys_of_event ON keys (event_id) WHERE event_id IS NOT NULL;
