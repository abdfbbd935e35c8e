-- Raises alerts, unless they are a coordinator's and another node is coordinator by now.
-- KEYS[1] the fence of KEYS[2], the alerts. ARGV[1] the coordinator's token, or empty: no coordinator raises them;
-- ARGV[2] how many are kept; ARGV[3] channel; ARGV[4…] alerts. Returns 0 if another node is coordinator.
if ARGV[1] ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
for i = 4, #ARGV do
  local alert = string.sub(ARGV[i], 1, -2) .. ',"timestamp":' .. now .. '}'
  redis.call('LPUSH', KEYS[2], alert)
  redis.call('PUBLISH', ARGV[3], alert)
end
redis.call('LTRIM', KEYS[2], 0, ARGV[2] - 1)
return 1
