-- Holds a rate limit: nobody gets a permit for so long. A longer hold that is in force stays.
-- KEYS[1] holds of the limit. ARGV[1] milliseconds.
-- Returns for how many milliseconds the limit is held now.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function whole(number) return string.format('%.0f', number) end
local held = redis.call('HMGET', KEYS[1], 'since', 'till')
local since, till = tonumber(held[1] or ''), tonumber(held[2] or '')
-- A hold from before the clock was set back lasts as long as it was meant to.
if since and till and since > now then
  till = now + till - since
  redis.call('HSET', KEYS[1], 'since', whole(now), 'till', whole(till))
end
local wanted = now + ARGV[1] * 1000
if till and till >= wanted then return math.ceil((till - now) / 1000) end
redis.call('HSET', KEYS[1], 'since', whole(now), 'till', whole(wanted))
redis.call('PEXPIRE', KEYS[1], whole(math.max(ARGV[1] + 1000, redis.call('PTTL', KEYS[1]))))
return tonumber(ARGV[1])
