-- Campaigns: accounts, campaigns, the ledger of their recipients, attempts, suppressed addresses. The columns are those of
-- ../sqlite. Times are milliseconds since 1970.

-- Where a ticket may be sent besides mail, as it was given.
ALTER TABLE tickets ADD COLUMN phone TEXT;
ALTER TABLE tickets ADD COLUMN chat TEXT;

CREATE TABLE campaign_accounts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- NULL: everybody may use it.
    owner TEXT COLLATE "C",
    name TEXT NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    -- JSON.
    settings TEXT NOT NULL,
    pacing TEXT NOT NULL,
    country TEXT COLLATE "C",
    time_zone TEXT COLLATE "C",
    -- Why it may not send; NULL: it may.
    blocked TEXT,
    -- Encrypted with the ticket secret; NULL: it has none.
    credentials TEXT,
    -- 1: encrypted with a ticket secret that was replaced.
    credentials_lost BIGINT NOT NULL DEFAULT 0,
    first_sent_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- 1: deleted. The id stays taken: receipts and suppressions name it.
    deleted BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX campaign_accounts_of_owner ON campaign_accounts (owner, id);

INSERT INTO campaign_accounts (id, name, channel, settings, pacing, created_at, updated_at)
SELECT 'console', 'Console', 'console', '{}', '{}', now, now
FROM (SELECT CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) AS BIGINT) * 1000 AS now) AS clock;

-- No reference to accounts, events and batches: a campaign outlives them.
CREATE TABLE campaigns (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('draft', 'scheduled', 'running', 'paused', 'completed', 'cancelled')),
    reason TEXT,
    -- JSON.
    content TEXT NOT NULL,
    pacing TEXT NOT NULL,
    auto_pause TEXT NOT NULL,
    max_attempts BIGINT NOT NULL,
    time_zone TEXT COLLATE "C",
    country TEXT COLLATE "C",
    start_at BIGINT,
    end_at BIGINT,
    event_id TEXT COLLATE "C",
    batch_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    -- 1: deleted; its recipients are removed in portions, then the row.
    deleted BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX campaigns_of_owner ON campaigns (owner, id);
CREATE INDEX campaigns_of_account ON campaigns (account_id, state);
CREATE INDEX campaigns_of_event ON campaigns (event_id, id) WHERE event_id IS NOT NULL;
CREATE INDEX campaigns_to_feed ON campaigns (id) WHERE state IN ('running', 'scheduled');
CREATE INDEX campaigns_cancelled ON campaigns (id) WHERE state = 'cancelled';
CREATE INDEX campaigns_deleted ON campaigns (id) WHERE deleted = 1;

-- The recipients of a campaign by state: written by the triggers below and by nothing else. A table of its own, because a
-- campaign's row is wide.
CREATE TABLE campaign_counts (
    campaign_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    pending BIGINT NOT NULL DEFAULT 0 CHECK (pending >= 0),
    queued BIGINT NOT NULL DEFAULT 0 CHECK (queued >= 0),
    sending BIGINT NOT NULL DEFAULT 0 CHECK (sending >= 0),
    sent BIGINT NOT NULL DEFAULT 0 CHECK (sent >= 0),
    delivered BIGINT NOT NULL DEFAULT 0 CHECK (delivered >= 0),
    read BIGINT NOT NULL DEFAULT 0 CHECK (read >= 0),
    failed BIGINT NOT NULL DEFAULT 0 CHECK (failed >= 0),
    unknown BIGINT NOT NULL DEFAULT 0 CHECK (unknown >= 0),
    skipped BIGINT NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    -- Grows with every change; the one that outsiders were told last; when progress was told last.
    revision BIGINT NOT NULL DEFAULT 0,
    told_revision BIGINT NOT NULL DEFAULT 0,
    told_at BIGINT NOT NULL DEFAULT 0
);

CREATE FUNCTION count_recipients_of_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO campaign_counts (campaign_id) VALUES (NEW.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER campaign_has_counts AFTER INSERT ON campaigns
FOR EACH ROW EXECUTE FUNCTION count_recipients_of_campaign();

-- The open import of a campaign: it has added all recipients behind `after_position`.
CREATE TABLE campaign_imports (
    campaign_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    import_id TEXT COLLATE "C" NOT NULL,
    after_position BIGINT NOT NULL,
    continued_at BIGINT NOT NULL,
    -- 1: it is being undone, and adds nothing more.
    undone BIGINT NOT NULL DEFAULT 0
);

-- The names of the fields that recipients came with, written when an import ends. At most a few thousand.
CREATE TABLE campaign_fields (
    campaign_id TEXT COLLATE "C" NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (campaign_id, name)
);

-- The ledger.
CREATE TABLE campaign_recipients (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    campaign_id TEXT COLLATE "C" NOT NULL REFERENCES campaigns (id),
    position BIGINT NOT NULL,
    -- The address, and the ticket if there is one. NULL: skipped as a duplicate or as invalid.
    dedupe_key TEXT COLLATE "C",
    address TEXT COLLATE "C" NOT NULL,
    -- A JSON object of texts.
    fields TEXT NOT NULL,
    message TEXT,
    time_zone TEXT COLLATE "C",
    ticket_id TEXT COLLATE "C",
    line BIGINT,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'queued', 'sending', 'sent', 'delivered', 'read', 'failed',
        'unknown', 'skipped')),
    skip_reason TEXT COLLATE "C",
    code TEXT COLLATE "C",
    detail TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    -- Only of pending recipients.
    next_at BIGINT,
    -- The run that claimed it last and has not said how it ended.
    run_id TEXT COLLATE "C",
    -- Attempts in the log, those that do not count included.
    logged BIGINT NOT NULL DEFAULT 0,
    provider_id TEXT COLLATE "C",
    updated_at BIGINT NOT NULL,
    sent_at BIGINT,
    delivered_at BIGINT,
    read_at BIGINT,
    CHECK (next_at IS NULL OR state = 'pending')
);

CREATE UNIQUE INDEX campaign_recipients_in_order ON campaign_recipients (campaign_id, position);
CREATE UNIQUE INDEX campaign_recipients_once ON campaign_recipients (campaign_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
-- For the feeder (pending ones that are due again, then those that were never tried) and for lists by state.
CREATE INDEX campaign_recipients_by_state ON campaign_recipients (campaign_id, state, next_at, position);
-- For the reconciler.
CREATE INDEX campaign_recipients_in_hand ON campaign_recipients (id) WHERE state IN ('queued', 'sending');
CREATE INDEX campaign_recipients_by_provider_id ON campaign_recipients (provider_id) WHERE provider_id IS NOT NULL;

CREATE TABLE campaign_attempts (
    recipient_id TEXT COLLATE "C" NOT NULL REFERENCES campaign_recipients (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    campaign_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    -- 0: postponed.
    counted BIGINT NOT NULL CHECK (counted IN (0, 1)),
    at BIGINT NOT NULL,
    took_ms BIGINT NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    code TEXT COLLATE "C",
    answer TEXT,
    PRIMARY KEY (recipient_id, number)
);

-- With the outcome: a report counts all of them.
CREATE INDEX campaign_attempts_by_time ON campaign_attempts (campaign_id, at, outcome) WHERE counted = 1;

-- Test messages, which the ledger does not know of: the last of each campaign.
CREATE TABLE campaign_tests (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    campaign_id TEXT COLLATE "C" NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    address TEXT COLLATE "C" NOT NULL,
    -- Of the recipient whose fields filled the message.
    position BIGINT NOT NULL,
    at BIGINT NOT NULL,
    -- NULL: the provider has not answered, or the process died before it wrote the answer.
    took_ms BIGINT,
    outcome TEXT COLLATE "C",
    code TEXT COLLATE "C",
    answer TEXT,
    provider_id TEXT COLLATE "C"
);

CREATE INDEX campaign_tests_of_campaign ON campaign_tests (campaign_id, id);

-- They outlive campaigns and accounts.
CREATE TABLE campaign_suppressions (
    -- '': all who use the account.
    owner TEXT COLLATE "C" NOT NULL,
    -- '*': all accounts of the owner.
    account_id TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    reason TEXT NOT NULL,
    since BIGINT NOT NULL,
    added_by TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, account_id, address)
);

CREATE INDEX campaign_suppressions_by_address ON campaign_suppressions (address);

-- Updates of providers that were acted on, for as long as a provider may repeat them.
CREATE TABLE campaign_updates (
    account_id TEXT COLLATE "C" NOT NULL,
    update_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account_id, update_id)
);

CREATE INDEX campaign_updates_by_time ON campaign_updates (at);

-- A campaign counts its recipients: whoever writes recipients, whichever way, moves the counts in the same statement.
--
-- One run per statement, not per row: many updates of one row in one transaction would leave many dead versions of it. Rows
-- are taken in the order of their ids, so that two statements cannot wait for each other in a circle.
CREATE FUNCTION count_recipients() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Which of the two transition tables exist depends on the operation.
    changes CONSTANT TEXT := CASE TG_OP
        WHEN 'INSERT' THEN 'SELECT 1 AS n, campaign_id, state FROM added'
        WHEN 'DELETE' THEN 'SELECT -1 AS n, campaign_id, state FROM removed'
        ELSE 'SELECT 1 AS n, campaign_id, state FROM added
              UNION ALL
              SELECT -1, campaign_id, state FROM removed'
    END;
    delta RECORD;
BEGIN
    FOR delta IN EXECUTE '
        SELECT campaign_id,
               SUM(CASE WHEN state = ''pending'' THEN n ELSE 0 END) AS pending,
               SUM(CASE WHEN state = ''queued'' THEN n ELSE 0 END) AS queued,
               SUM(CASE WHEN state = ''sending'' THEN n ELSE 0 END) AS sending,
               SUM(CASE WHEN state = ''sent'' THEN n ELSE 0 END) AS sent,
               SUM(CASE WHEN state = ''delivered'' THEN n ELSE 0 END) AS delivered,
               SUM(CASE WHEN state = ''read'' THEN n ELSE 0 END) AS read,
               SUM(CASE WHEN state = ''failed'' THEN n ELSE 0 END) AS failed,
               SUM(CASE WHEN state = ''unknown'' THEN n ELSE 0 END) AS unknown,
               SUM(CASE WHEN state = ''skipped'' THEN n ELSE 0 END) AS skipped
        FROM (' || changes || ') AS change
        GROUP BY campaign_id
        ORDER BY campaign_id'
    LOOP
        UPDATE campaign_counts
        SET
            pending = campaign_counts.pending + delta.pending,
            queued = campaign_counts.queued + delta.queued,
            sending = campaign_counts.sending + delta.sending,
            sent = campaign_counts.sent + delta.sent,
            delivered = campaign_counts.delivered + delta.delivered,
            read = campaign_counts.read + delta.read,
            failed = campaign_counts.failed + delta.failed,
            unknown = campaign_counts.unknown + delta.unknown,
            skipped = campaign_counts.skipped + delta.skipped,
            revision = campaign_counts.revision + 1
        WHERE campaign_id = delta.campaign_id
          -- An update that leaves every state as it was leaves the counts as they were.
          AND (delta.pending <> 0 OR delta.queued <> 0 OR delta.sending <> 0 OR delta.sent <> 0
               OR delta.delivered <> 0 OR delta.read <> 0 OR delta.failed <> 0 OR delta.unknown <> 0
               OR delta.skipped <> 0);
    END LOOP;
    RETURN NULL;
END
$$;

CREATE TRIGGER count_added_recipients AFTER INSERT ON campaign_recipients
REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_recipients();

CREATE TRIGGER count_changed_recipients AFTER UPDATE ON campaign_recipients
REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_recipients();

CREATE TRIGGER count_removed_recipients AFTER DELETE ON campaign_recipients
REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION count_recipients();
