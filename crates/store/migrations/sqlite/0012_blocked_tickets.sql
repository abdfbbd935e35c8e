-- Tickets that are refused at every door until the organiser lifts the block. The columns are those of ../postgres.
CREATE TABLE check_in_blocks (
    ticket_id TEXT NOT NULL PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    serial INTEGER NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX check_in_blocks_of_event ON check_in_blocks (event_id, serial);

CREATE TRIGGER check_in_unblocks_deleted_ticket AFTER DELETE ON tickets
BEGIN
    DELETE FROM check_in_blocks WHERE ticket_id = OLD.id;
END;
