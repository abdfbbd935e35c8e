-- Lists of batches: of one user, and of one event, in the order of their ids.

CREATE INDEX batches_of_owner ON batches (owner, id);
CREATE INDEX batches_of_event_in_order ON batches (event_id, id);
