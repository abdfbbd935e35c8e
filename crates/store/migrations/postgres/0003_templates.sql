-- Templates of organisers, what became of them when they were compiled, and which one an event uses.
-- The columns are those of ../sqlite.

CREATE TABLE templates (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    -- The latest.
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX templates_of_owner ON templates (owner, id);

-- Tickets were made with a revision, so it is never changed.
CREATE TABLE template_revisions (
    template_id TEXT COLLATE "C" NOT NULL REFERENCES templates (id),
    number BIGINT NOT NULL CHECK (number BETWEEN 1 AND 4294967295),
    hash TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    -- A tar archive: whoever takes it out of the database can open it.
    files BYTEA NOT NULL CHECK (length(files) <= 9437184),
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (template_id, number)
);

CREATE FUNCTION refuse_template_revision_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a revision of a template is never changed';
END
$$;

CREATE TRIGGER template_revision_is_never_changed BEFORE UPDATE ON template_revisions
FOR EACH ROW EXECUTE FUNCTION refuse_template_revision_change();

-- NULL in all three: the default design. A design that ships, or one of the templates, pinned to a
-- revision or (NULL) following the latest.
ALTER TABLE events
    ADD COLUMN template_design TEXT COLLATE "C",
    ADD COLUMN template_id TEXT COLLATE "C" REFERENCES templates (id),
    ADD COLUMN template_revision BIGINT;

CREATE INDEX events_of_template ON events (template_id) WHERE template_id IS NOT NULL;

-- A cache: any row may be deleted at any time, and is made again.
CREATE TABLE compiled_templates (
    key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    blob BYTEA NOT NULL,
    size BIGINT NOT NULL,
    made_at BIGINT NOT NULL
);

CREATE INDEX compiled_templates_by_age ON compiled_templates (made_at, key, size);
