-- Gives the name of a node back, unless another process holds it by now.
-- KEYS[1] the holder of the name. ARGV[1] the process that gives it back. Returns how many keys were removed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
