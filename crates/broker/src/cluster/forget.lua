-- Removes the entries of a node or worker that is gone, unless another start of it has them. See
-- registry.rs.
-- KEYS[1] which start it is; KEYS[2] those that are there, by when they expire; KEYS[3], KEYS[4] the
-- hashes; KEYS[5] a note that it left in good order, for some time.
-- ARGV[1] name; ARGV[2] the start that is gone; ARGV[3] how long the note stays, or 0 for none.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[2] then return end
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
if ARGV[3] == '0' then
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  -- The next node that says it is there settles what this one has counted.
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
  redis.call('SET', KEYS[5], '1', 'PX', ARGV[3])
end
