-- Lists nodes or workers that are there. See registry.rs.
-- KEYS[1] those that are there, by when they expire; KEYS[2], KEYS[3] what they say of themselves.
-- ARGV[1] milliseconds to live. Returns {name, one text or '', other text or '', age in ms, …}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
local entries = {}
for i = 1, #found, 2 do
  entries[#entries + 1] = found[i]
  entries[#entries + 1] = redis.call('HGET', KEYS[2], found[i]) or ''
  entries[#entries + 1] = redis.call('HGET', KEYS[3], found[i]) or ''
  entries[#entries + 1] = string.format('%.0f', math.max(0, now + ARGV[1] - found[i + 1]))
end
return entries
