-- What a coordinator has seen: statistics and alerts, written if it still coordinates. See decisions.rs.
-- KEYS[1] the lease; KEYS[2] cluster:stats; KEYS[3] cluster:alerts.
-- ARGV[1] the lease as the coordinator has it; ARGV[2] statistics; ARGV[3] seconds they are kept;
-- ARGV[4] how many alerts are kept; ARGV[5] channel of alerts; ARGV[6…] alerts.
-- Returns 0 if another coordinates.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = ',"timestamp":' .. string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) .. '}'
redis.call('SET', KEYS[2], string.sub(ARGV[2], 1, -2) .. now, 'EX', ARGV[3])
for i = 6, #ARGV do
  local alert = string.sub(ARGV[i], 1, -2) .. now
  redis.call('LPUSH', KEYS[3], alert)
  redis.call('PUBLISH', ARGV[5], alert)
end
redis.call('LTRIM', KEYS[3], 0, ARGV[4] - 1)
return 1
