-- Templates of organisers, what became of them when they were compiled, and which one an event uses.
-- The columns are those of ../postgres.

CREATE TABLE templates (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The latest.
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX templates_of_owner ON templates (owner, id);

-- Tickets were made with a revision, so it is never changed.
CREATE TABLE template_revisions (
    template_id TEXT NOT NULL REFERENCES templates (id),
    number INTEGER NOT NULL CHECK (number BETWEEN 1 AND 4294967295),
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    -- A tar archive: whoever takes it out of the database can open it.
    files BLOB NOT NULL CHECK (length(files) <= 9437184),
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (template_id, number)
) STRICT;

CREATE TRIGGER template_revision_is_never_changed BEFORE UPDATE ON template_revisions
BEGIN
    SELECT RAISE(ABORT, 'a revision of a template is never changed');
END;

-- NULL in all three: the default design. A design that ships, or one of the templates, pinned to a
-- revision or (NULL) following the latest.
ALTER TABLE events ADD COLUMN template_design TEXT;
ALTER TABLE events ADD COLUMN template_id TEXT REFERENCES templates (id);
ALTER TABLE events ADD COLUMN template_revision INTEGER;

CREATE INDEX events_of_template ON events (template_id) WHERE template_id IS NOT NULL;

-- A cache: any row may be deleted at any time, and is made again.
CREATE TABLE compiled_templates (
    key TEXT NOT NULL PRIMARY KEY,
    blob BLOB NOT NULL,
    size INTEGER NOT NULL,
    made_at INTEGER NOT NULL
) STRICT;

CREATE INDEX compiled_templates_by_age ON compiled_templates (made_at, key, size);
