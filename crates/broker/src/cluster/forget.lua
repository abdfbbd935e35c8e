-- Removes an entry, unless another start of the same name wrote it. See registry.rs.
-- KEYS[1] the hash; ARGV[1] field; ARGV[2] what stands in entries of the start that is gone.
local text = redis.call('HGET', KEYS[1], ARGV[1])
if text and string.find(text, ARGV[2], 1, true) then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
