-- Removes an entry, unless another process of the same name wrote it.
-- KEYS[1] the hash; ARGV[1] field; ARGV[2] a text that entries of the process that is gone contain.
local text = redis.call('HGET', KEYS[1], ARGV[1])
if text and string.find(text, ARGV[2], 1, true) then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
