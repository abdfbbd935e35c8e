-- Publishes a coordinator's decision to its node and remembers it, unless another node is coordinator by now.
-- KEYS[1] the fence of KEYS[2], scaling:history.
-- ARGV[1] token; ARGV[2] channel of the node; ARGV[3] the decision; ARGV[4] how many are remembered;
-- ARGV[5] channel of decisions; ARGV[6] 'cluster' in a Cluster, where only those on the same server are counted.
-- Returns -1 if another node is coordinator, 0 if no subscriber received it (then it is not remembered), else 1.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local entry = string.sub(ARGV[3], 1, -2) .. ',"timestamp":' .. now .. '}'
local heard = redis.call('PUBLISH', ARGV[2], entry)
if heard == 0 and ARGV[6] ~= 'cluster' then return 0 end
redis.call('LPUSH', KEYS[2], entry)
redis.call('LTRIM', KEYS[2], 0, ARGV[4] - 1)
redis.call('PUBLISH', ARGV[5], entry)
return 1
