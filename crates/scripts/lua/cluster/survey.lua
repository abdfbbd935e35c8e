-- Writes what the coordinator has seen, unless another node is coordinator by now.
-- KEYS[1] the fence of KEYS[2]. ARGV[1] token; ARGV[2] a JSON object; ARGV[3] seconds it is kept.
-- Returns 0 if another node is coordinator.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('SET', KEYS[2], string.sub(ARGV[2], 1, -2) .. ',"timestamp":' .. now .. '}', 'EX', ARGV[3])
return 1
