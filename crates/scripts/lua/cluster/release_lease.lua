-- Gives a lease back, unless another node holds it by now.
--   KEYS[1]  the lease
--   ARGV[1]  "<token> <holder>" of the node that gives it back
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
