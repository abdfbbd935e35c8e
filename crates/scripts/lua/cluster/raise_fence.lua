-- Raises the fence: from now on only writes with this fencing token, or a larger one, are accepted.
-- KEYS[1] the fence; ARGV[1] the token; ARGV[2] seconds it is kept. Returns 0 if the token is too small.
local standing = tonumber(redis.call('GET', KEYS[1]) or '0')
if standing > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1
