-- Campaigns: recipients by the ids of providers, and those that wait for the end of quiet hours.

-- The newest first: a provider may give many messages the same id.
DROP INDEX campaign_recipients_by_provider_id;
CREATE INDEX campaign_recipients_by_provider_id ON campaign_recipients (provider_id, id) WHERE provider_id IS NOT NULL;

-- They are queued again when the hours are changed.
CREATE INDEX campaign_recipients_put_off ON campaign_recipients (campaign_id, updated_at)
    WHERE state = 'pending' AND code = 'quiet_hours';
