-- Webhooks: endpoints of organisers, and what was sent to them. The columns are those of ../postgres. Times are
-- milliseconds since 1970.

-- No reference to events: the endpoint of an event is told that the event was deleted.
CREATE TABLE webhook_endpoints (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    -- The chosen kinds as a JSON list; NULL: all kinds.
    kinds TEXT,
    -- The only event whose messages it gets; NULL: all events of its owner.
    event_id TEXT,
    -- Why and since when it gets nothing; NULL: it is active.
    disabled_reason TEXT,
    disabled_at INTEGER,
    -- Encrypted with the ticket secret.
    secret TEXT NOT NULL,
    former_secret TEXT,
    former_until INTEGER,
    -- Counts the changes that people make.
    version INTEGER NOT NULL,
    -- The first failure since the last success.
    failing_since INTEGER,
    last_success_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Set when it is deleted; its deliveries are removed in portions, then the row.
    deleted_at INTEGER
) STRICT;

CREATE INDEX webhook_endpoints_of_owner ON webhook_endpoints (owner, id);

-- One message to one endpoint.
CREATE TABLE webhook_deliveries (
    id TEXT NOT NULL PRIMARY KEY,
    endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    -- The same for all endpoints, and for every attempt.
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    event_id TEXT,
    batch_id TEXT,
    -- When it happened, and what: JSON.
    happened_at INTEGER NOT NULL,
    data TEXT NOT NULL,
    -- pending, delivered, failed or cancelled.
    state TEXT NOT NULL,
    -- Attempts in all, and since it was last asked for.
    attempts INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    -- 1: a job for it was added to the queue.
    queued INTEGER NOT NULL,
    next_at INTEGER,
    last_status INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    UNIQUE (endpoint_id, message_id)
) STRICT;

CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, state, id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_unqueued ON webhook_deliveries (id) WHERE state = 'pending' AND queued = 0;
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
    delivery_id TEXT NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    -- The status of the answer; NULL: there was none, and the error says why.
    status INTEGER,
    error TEXT,
    -- The beginning of the answer.
    answer TEXT NOT NULL,
    PRIMARY KEY (delivery_id, number)
) STRICT;
