-- Takes or keeps the name of a node.
-- KEYS[1] the holder of the name. ARGV[1] the process that asks; ARGV[2] milliseconds to live; ARGV[3] a holder known
-- to be dead, or ''.
-- Returns {1}, or {0, holder, milliseconds until it expires}.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and holder ~= ARGV[3] then
  return {0, holder, redis.call('PTTL', KEYS[1])}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, '', 0}
