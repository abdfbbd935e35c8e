-- Campaigns: accounts, campaigns, the ledger of their recipients, attempts, suppressed addresses. The columns are those of
-- ../postgres. Times are milliseconds since 1970.

-- Where a ticket may be sent besides mail, as it was given.
ALTER TABLE tickets ADD COLUMN phone TEXT;
ALTER TABLE tickets ADD COLUMN chat TEXT;

CREATE TABLE campaign_accounts (
    id TEXT NOT NULL PRIMARY KEY,
    -- NULL: everybody may use it.
    owner TEXT,
    name TEXT NOT NULL,
    channel TEXT NOT NULL,
    -- JSON.
    settings TEXT NOT NULL,
    pacing TEXT NOT NULL,
    country TEXT,
    time_zone TEXT,
    -- Why it may not send; NULL: it may.
    blocked TEXT,
    -- Encrypted with the ticket secret; NULL: it has none.
    credentials TEXT,
    -- 1: encrypted with a ticket secret that was replaced.
    credentials_lost INTEGER NOT NULL DEFAULT 0,
    first_sent_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- 1: deleted. The id stays taken: receipts and suppressions name it.
    deleted INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX campaign_accounts_of_owner ON campaign_accounts (owner, id);

INSERT INTO campaign_accounts (id, name, channel, settings, pacing, created_at, updated_at)
SELECT 'console', 'Console', 'console', '{}', '{}', now, now
FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS now);

-- No reference to accounts, events and batches: a campaign outlives them.
CREATE TABLE campaigns (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    account_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('draft', 'scheduled', 'running', 'paused', 'completed', 'cancelled')),
    reason TEXT,
    -- JSON.
    content TEXT NOT NULL,
    pacing TEXT NOT NULL,
    auto_pause TEXT NOT NULL,
    max_attempts INTEGER NOT NULL,
    time_zone TEXT,
    country TEXT,
    start_at INTEGER,
    end_at INTEGER,
    event_id TEXT,
    batch_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    -- 1: deleted; its recipients are removed in portions, then the row.
    deleted INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX campaigns_of_owner ON campaigns (owner, id);
CREATE INDEX campaigns_of_account ON campaigns (account_id, state);
CREATE INDEX campaigns_of_event ON campaigns (event_id, id) WHERE event_id IS NOT NULL;
CREATE INDEX campaigns_to_feed ON campaigns (id) WHERE state IN ('running', 'scheduled');
CREATE INDEX campaigns_cancelled ON campaigns (id) WHERE state = 'cancelled';
CREATE INDEX campaigns_deleted ON campaigns (id) WHERE deleted = 1;

-- The recipients of a campaign by state: written by the triggers below and by nothing else. A table of its own, because a
-- campaign's row is wide.
CREATE TABLE campaign_counts (
    campaign_id TEXT NOT NULL PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    pending INTEGER NOT NULL DEFAULT 0 CHECK (pending >= 0),
    queued INTEGER NOT NULL DEFAULT 0 CHECK (queued >= 0),
    sending INTEGER NOT NULL DEFAULT 0 CHECK (sending >= 0),
    sent INTEGER NOT NULL DEFAULT 0 CHECK (sent >= 0),
    delivered INTEGER NOT NULL DEFAULT 0 CHECK (delivered >= 0),
    read INTEGER NOT NULL DEFAULT 0 CHECK (read >= 0),
    failed INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
    unknown INTEGER NOT NULL DEFAULT 0 CHECK (unknown >= 0),
    skipped INTEGER NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    -- Grows with every change; the one that outsiders were told last; when progress was told last.
    revision INTEGER NOT NULL DEFAULT 0,
    told_revision INTEGER NOT NULL DEFAULT 0,
    told_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TRIGGER campaign_has_counts AFTER INSERT ON campaigns
BEGIN
    INSERT INTO campaign_counts (campaign_id) VALUES (NEW.id);
END;

-- The open import of a campaign: it has added all recipients behind `after_position`.
CREATE TABLE campaign_imports (
    campaign_id TEXT NOT NULL PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    import_id TEXT NOT NULL,
    after_position INTEGER NOT NULL,
    continued_at INTEGER NOT NULL,
    -- 1: it is being undone, and adds nothing more.
    undone INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The names of the fields that recipients came with, written when an import ends. At most a few thousand.
CREATE TABLE campaign_fields (
    campaign_id TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (campaign_id, name)
) STRICT;

-- The ledger.
CREATE TABLE campaign_recipients (
    id TEXT NOT NULL PRIMARY KEY,
    campaign_id TEXT NOT NULL REFERENCES campaigns (id),
    position INTEGER NOT NULL,
    -- The address, and the ticket if there is one. NULL: skipped as a duplicate or as invalid.
    dedupe_key TEXT,
    address TEXT NOT NULL,
    -- A JSON object of texts.
    fields TEXT NOT NULL,
    message TEXT,
    time_zone TEXT,
    ticket_id TEXT,
    line INTEGER,
    state TEXT NOT NULL CHECK (state IN ('pending', 'queued', 'sending', 'sent', 'delivered', 'read', 'failed',
        'unknown', 'skipped')),
    skip_reason TEXT,
    code TEXT,
    detail TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Only of pending recipients.
    next_at INTEGER,
    -- The run that claimed it last and has not said how it ended.
    run_id TEXT,
    -- Attempts in the log, those that do not count included.
    logged INTEGER NOT NULL DEFAULT 0,
    provider_id TEXT,
    updated_at INTEGER NOT NULL,
    sent_at INTEGER,
    delivered_at INTEGER,
    read_at INTEGER,
    CHECK (next_at IS NULL OR state = 'pending')
) STRICT;

CREATE UNIQUE INDEX campaign_recipients_in_order ON campaign_recipients (campaign_id, position);
CREATE UNIQUE INDEX campaign_recipients_once ON campaign_recipients (campaign_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
-- For the feeder (pending ones that are due again, then those that were never tried) and for lists by state.
CREATE INDEX campaign_recipients_by_state ON campaign_recipients (campaign_id, state, next_at, position);
-- For the reconciler.
CREATE INDEX campaign_recipients_in_hand ON campaign_recipients (id) WHERE state IN ('queued', 'sending');
CREATE INDEX campaign_recipients_by_provider_id ON campaign_recipients (provider_id) WHERE provider_id IS NOT NULL;

CREATE TABLE campaign_attempts (
    recipient_id TEXT NOT NULL REFERENCES campaign_recipients (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    campaign_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    -- 0: postponed.
    counted INTEGER NOT NULL CHECK (counted IN (0, 1)),
    at INTEGER NOT NULL,
    took_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    code TEXT,
    answer TEXT,
    PRIMARY KEY (recipient_id, number)
) STRICT;

-- With the outcome: a report counts all of them.
CREATE INDEX campaign_attempts_by_time ON campaign_attempts (campaign_id, at, outcome) WHERE counted = 1;

-- Test messages, which the ledger does not know of: the last of each campaign.
CREATE TABLE campaign_tests (
    id TEXT NOT NULL PRIMARY KEY,
    campaign_id TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    address TEXT NOT NULL,
    -- Of the recipient whose fields filled the message.
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    -- NULL: the provider has not answered, or the process died before it wrote the answer.
    took_ms INTEGER,
    outcome TEXT,
    code TEXT,
    answer TEXT,
    provider_id TEXT
) STRICT;

CREATE INDEX campaign_tests_of_campaign ON campaign_tests (campaign_id, id);

-- They outlive campaigns and accounts.
CREATE TABLE campaign_suppressions (
    -- '': all who use the account.
    owner TEXT NOT NULL,
    -- '*': all accounts of the owner.
    account_id TEXT NOT NULL,
    address TEXT NOT NULL,
    reason TEXT NOT NULL,
    since INTEGER NOT NULL,
    added_by TEXT NOT NULL,
    PRIMARY KEY (owner, account_id, address)
) STRICT;

CREATE INDEX campaign_suppressions_by_address ON campaign_suppressions (address);

-- Updates of providers that were acted on, for as long as a provider may repeat them.
CREATE TABLE campaign_updates (
    account_id TEXT NOT NULL,
    update_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (account_id, update_id)
) STRICT;

CREATE INDEX campaign_updates_by_time ON campaign_updates (at);

-- A campaign counts its recipients: whoever writes a recipient, whichever way, moves the counts in the same statement.

CREATE TRIGGER count_added_recipient AFTER INSERT ON campaign_recipients
BEGIN
    UPDATE campaign_counts
    SET pending = pending + (NEW.state = 'pending'),
        queued = queued + (NEW.state = 'queued'),
        sending = sending + (NEW.state = 'sending'),
        sent = sent + (NEW.state = 'sent'),
        delivered = delivered + (NEW.state = 'delivered'),
        read = read + (NEW.state = 'read'),
        failed = failed + (NEW.state = 'failed'),
        unknown = unknown + (NEW.state = 'unknown'),
        skipped = skipped + (NEW.state = 'skipped'),
        revision = revision + 1
    WHERE campaign_id = NEW.campaign_id;
END;

CREATE TRIGGER count_changed_recipient AFTER UPDATE OF state ON campaign_recipients
WHEN OLD.state <> NEW.state
BEGIN
    UPDATE campaign_counts
    SET pending = pending + (NEW.state = 'pending') - (OLD.state = 'pending'),
        queued = queued + (NEW.state = 'queued') - (OLD.state = 'queued'),
        sending = sending + (NEW.state = 'sending') - (OLD.state = 'sending'),
        sent = sent + (NEW.state = 'sent') - (OLD.state = 'sent'),
        delivered = delivered + (NEW.state = 'delivered') - (OLD.state = 'delivered'),
        read = read + (NEW.state = 'read') - (OLD.state = 'read'),
        failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed'),
        unknown = unknown + (NEW.state = 'unknown') - (OLD.state = 'unknown'),
        skipped = skipped + (NEW.state = 'skipped') - (OLD.state = 'skipped'),
        revision = revision + 1
    WHERE campaign_id = NEW.campaign_id;
END;

CREATE TRIGGER count_removed_recipient AFTER DELETE ON campaign_recipients
BEGIN
    UPDATE campaign_counts
    SET pending = pending - (OLD.state = 'pending'),
        queued = queued - (OLD.state = 'queued'),
        sending = sending - (OLD.state = 'sending'),
        sent = sent - (OLD.state = 'sent'),
        delivered = delivered - (OLD.state = 'delivered'),
        read = read - (OLD.state = 'read'),
        failed = failed - (OLD.state = 'failed'),
        unknown = unknown - (OLD.state = 'unknown'),
        skipped = skipped - (OLD.state = 'skipped'),
        revision = revision + 1
    WHERE campaign_id = OLD.campaign_id;
END;

CREATE TRIGGER recipient_stays_in_its_campaign BEFORE UPDATE OF campaign_id ON campaign_recipients
WHEN OLD.campaign_id <> NEW.campaign_id
BEGIN
    SELECT RAISE(ABORT, 'a recipient never moves to another campaign');
END;
