-- Adds up the counts of nodes that are gone, so that sums over all fields do not shrink. See registry.rs.
-- KEYS[1] a hash of counters by node; ARGV the nodes that are there.
local there = { ['(departed)'] = true }
for _, name in ipairs(ARGV) do there[name] = true end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if not there[all[i]] then
    redis.call('HINCRBY', KEYS[1], '(departed)', all[i + 1])
    redis.call('HDEL', KEYS[1], all[i])
  end
end
