-- The language of an event's tickets, as BCP 47 writes it; NULL: English.

ALTER TABLE events ADD COLUMN lang TEXT;
