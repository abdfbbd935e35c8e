-- Mail addresses are compared without regard to case: the keys of recipients and the addresses of suppressions are in lower
-- case from now on (stampede_model::campaign::address_key). The address of a recipient stays as it was written.

-- Of several suppressions that differ in case, the one in lower case stays, else the oldest.
INSERT INTO campaign_suppressions (owner, account_id, address, reason, since, added_by)
SELECT owner, account_id, LOWER(address), reason, since, added_by FROM campaign_suppressions
WHERE address LIKE '_%@_%' AND address <> LOWER(address)
ORDER BY since
ON CONFLICT (owner, account_id, address) DO NOTHING;

DELETE FROM campaign_suppressions WHERE address LIKE '_%@_%' AND address <> LOWER(address);

-- A campaign that has two spellings of one address already keeps both recipients, with their keys.
UPDATE campaign_recipients SET dedupe_key = LOWER(dedupe_key)
WHERE dedupe_key LIKE '_%@_%' AND dedupe_key <> LOWER(dedupe_key) AND id IN (
    SELECT MIN(id) FROM campaign_recipients WHERE dedupe_key LIKE '_%@_%'
    GROUP BY campaign_id, LOWER(dedupe_key) HAVING COUNT(*) = 1
);
