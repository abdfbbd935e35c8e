-- Tickets that are refused at every door until the organiser lifts the block. The columns are those of ../sqlite.
-- No reference to tickets: a check of it would lock the ticket after the event's counter, and whoever deletes a ticket
-- locks them the other way round.
CREATE TABLE check_in_blocks (
    ticket_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    serial BIGINT NOT NULL,
    reason TEXT,
    created_at BIGINT NOT NULL
);

CREATE INDEX check_in_blocks_of_event ON check_in_blocks (event_id, serial);

CREATE FUNCTION unblock_deleted_ticket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM check_in_blocks WHERE ticket_id = OLD.id;
    RETURN NULL;
END
$$;

-- Its name comes after check_in_notes_deleted_ticket, so the counter is locked first.
CREATE TRIGGER check_in_unblocks_deleted_ticket AFTER DELETE ON tickets
FOR EACH ROW EXECUTE FUNCTION unblock_deleted_ticket();
