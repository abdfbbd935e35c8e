-- Writes a heartbeat: one entry of a hash, with the time; removes entries that are too old.
-- KEYS[1] the hash. ARGV[1] field; ARGV[2] a JSON object; ARGV[3] milliseconds to live;
-- ARGV[4] the name of the time in it: "last_heartbeat" is in seconds, others in milliseconds;
-- ARGV[5] 'sweep' to look for old entries. Returns the sum of "workers" over all other entries.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local unit = ARGV[4] == 'last_heartbeat' and 1000 or 1
local comma = ARGV[2] == '{}' and '' or ','
local stamp = string.format('%s"%s":%.0f}', comma, ARGV[4], math.floor(now / unit))
redis.call('HSET', KEYS[1], ARGV[1], string.sub(ARGV[2], 1, -2) .. stamp)
-- When no node is left to remove entries, all of them expire together.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local others = 0
if ARGV[5] == 'sweep' then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    -- The time is at the end of our entries; entries of other software without it are theirs to remove.
    local written = string.match(all[i + 1], '"' .. ARGV[4] .. '":(%d+)}$')
    -- An entry from the future was written before the clock was set back, and is as worthless as an old one.
    if written and math.abs(now - written * unit) > tonumber(ARGV[3]) then
      redis.call('HDEL', KEYS[1], all[i])
    elseif all[i] ~= ARGV[1] then
      others = others + (string.match(all[i + 1], '"workers":(%d+)') or 0)
    end
  end
end
return others
