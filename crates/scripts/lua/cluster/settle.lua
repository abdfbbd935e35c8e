-- Moves the counts of nodes that are gone to the field '(departed)', so that sums over all fields do not shrink,
-- unless another node is coordinator by now.
-- KEYS[1] the fence of KEYS[2], a hash of counters by node. ARGV[1] token; ARGV[2…] the nodes that are there.
-- Returns 0 if another node is coordinator.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local there = { ['(departed)'] = true }
for i = 2, #ARGV do there[ARGV[i]] = true end
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if not there[all[i]] then
    redis.call('HINCRBY', KEYS[2], '(departed)', all[i + 1])
    redis.call('HDEL', KEYS[2], all[i])
  end
end
return 1
