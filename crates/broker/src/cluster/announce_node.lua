-- A node says that it is there; entries of nodes that did not for too long vanish. See registry.rs.
-- KEYS[1] who holds the name; KEYS[2] nodes by when they expire; KEYS[3] workers:stats;
-- KEYS[4] queue:metrics; KEYS[5..7] stats:completed, stats:failed, stats:stalled; KEYS[8] the lease;
-- KEYS[9] the note of a node that left in good order.
-- ARGV[1] name; ARGV[2] holder; ARGV[3] milliseconds to live; ARGV[4] statistics; ARGV[5] queue
-- metrics, or '' if they are not known now; ARGV[6] a holder known to be dead, or ''.
-- Returns {0, holder, milliseconds until it expires} if another holds the name, or
-- {1, lease or '', workers of other nodes}.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[2] and holder ~= ARGV[6] then
  return {0, holder, redis.call('PTTL', KEYS[1])}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamped = function(text)
  local comma = text == '{}' and '' or ','
  return string.sub(text, 1, -2) .. comma .. '"timestamp":' .. string.format('%.0f', now) .. '}'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], stamped(ARGV[4]))
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[4], ARGV[1], stamped(ARGV[5]))
end
redis.call('DEL', KEYS[9])
-- When nobody is left to remove the entries, all of them are too old together.
redis.call('PEXPIRE', KEYS[3], ARGV[3])
redis.call('PEXPIRE', KEYS[4], ARGV[3])
for i = 5, 7 do
  redis.call('HINCRBY', KEYS[i], ARGV[1], 0)
end
local dead = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for _, name in ipairs(dead) do
  redis.call('HDEL', KEYS[3], name)
  redis.call('HDEL', KEYS[4], name)
  for i = 5, 7 do
    -- What a node did stays done: sums over all fields do not shrink when it goes.
    local count = redis.call('HGET', KEYS[i], name)
    if count then
      redis.call('HINCRBY', KEYS[i], '(departed)', count)
      redis.call('HDEL', KEYS[i], name)
    end
  end
  redis.call('ZREM', KEYS[2], name)
end
local others = 0
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if name ~= ARGV[1] then
    local text = redis.call('HGET', KEYS[3], name)
    local read, stats = pcall(cjson.decode, text or '')
    if read and type(stats) == 'table' and type(stats.workers) == 'number' then
      others = others + stats.workers
    end
  end
end
return {1, redis.call('GET', KEYS[8]) or '', others}
