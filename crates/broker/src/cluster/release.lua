-- Gives the name of a node back, unless another holds it by now. See registry.rs.
-- KEYS[1] who holds the name. ARGV[1] who gives it back. Returns whether it did.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
