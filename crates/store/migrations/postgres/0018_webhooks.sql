-- Webhooks: endpoints of organisers, and what was sent to them. The columns are those of ../sqlite. Times are
-- milliseconds since 1970.

-- No reference to events: the endpoint of an event is told that the event was deleted.
CREATE TABLE webhook_endpoints (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    description TEXT NOT NULL,
    -- The chosen kinds as a JSON list; NULL: all kinds.
    kinds TEXT,
    -- The only event whose messages it gets; NULL: all events of its owner.
    event_id TEXT COLLATE "C",
    -- Why and since when it gets nothing; NULL: it is active.
    disabled_reason TEXT,
    disabled_at BIGINT,
    -- Encrypted with the ticket secret.
    secret TEXT NOT NULL,
    former_secret TEXT,
    former_until BIGINT,
    -- Counts the changes that people make.
    version BIGINT NOT NULL,
    -- The first failure since the last success.
    failing_since BIGINT,
    last_success_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- Set when it is deleted; its deliveries are removed in portions, then the row.
    deleted_at BIGINT
);

CREATE INDEX webhook_endpoints_of_owner ON webhook_endpoints (owner, id);

-- One message to one endpoint.
CREATE TABLE webhook_deliveries (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    endpoint_id TEXT COLLATE "C" NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    -- The same for all endpoints, and for every attempt.
    message_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    event_id TEXT COLLATE "C",
    batch_id TEXT COLLATE "C",
    -- When it happened, and what: JSON.
    happened_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    -- pending, delivered, failed or cancelled.
    state TEXT COLLATE "C" NOT NULL,
    -- Attempts in all, and since it was last asked for.
    attempts BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    -- 1: a job for it was added to the queue.
    queued BIGINT NOT NULL,
    next_at BIGINT,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    UNIQUE (endpoint_id, message_id)
);

CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, state, id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_unqueued ON webhook_deliveries (id) WHERE state = 'pending' AND queued = 0;
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
    delivery_id TEXT COLLATE "C" NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    -- The status of the answer; NULL: there was none, and the error says why.
    status BIGINT,
    error TEXT,
    -- The beginning of the answer.
    answer TEXT NOT NULL,
    PRIMARY KEY (delivery_id, number)
);
