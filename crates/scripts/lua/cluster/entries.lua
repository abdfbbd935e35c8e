-- Lists entries that are not too old.
-- KEYS[1] the hash; ARGV[1] milliseconds to live; ARGV[2] the name of the time in its entries;
-- ARGV[3] 'sweep' to remove the others.
-- Returns {field, text, age in milliseconds, …}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local unit = ARGV[2] == 'last_heartbeat' and 1000 or 1
local all = redis.call('HGETALL', KEYS[1])
local entries = {}
for i = 1, #all, 2 do
  local written = string.match(all[i + 1], '"' .. ARGV[2] .. '":(%d+)}$')
  local age = written and now - written * unit
  -- An entry from the future was written before the clock was set back, and is as worthless as an old one.
  if age and math.abs(age) <= tonumber(ARGV[1]) then
    entries[#entries + 1] = all[i]
    entries[#entries + 1] = all[i + 1]
    entries[#entries + 1] = string.format('%.0f', math.max(0, age))
  elseif age and ARGV[3] == 'sweep' then
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return entries
