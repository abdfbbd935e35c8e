-- Names by which people find a key, and secrets that were replaced and still work for a while.
-- The columns are those of ../postgres. Times are milliseconds since 1970.

-- The label of a key that was named by a person; NULL for devices and for keys without a name of their own.
ALTER TABLE keys ADD COLUMN unique_name TEXT;

CREATE UNIQUE INDEX keys_by_name ON keys (owner, unique_name) WHERE unique_name IS NOT NULL AND revoked_at IS NULL;

CREATE TABLE former_keys (
    hash TEXT NOT NULL,
    key_id TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    valid_until INTEGER NOT NULL,
    PRIMARY KEY (hash, key_id)
) STRICT;

CREATE INDEX former_keys_of_key ON former_keys (key_id);
