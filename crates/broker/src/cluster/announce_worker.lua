-- A worker says that it is there and what it has done since it last said so. See registry.rs.
-- KEYS[1] which start of the worker it is; KEYS[2] workers by when they expire; KEYS[3] workers:active;
-- KEYS[4] workers:heartbeat; KEYS[5..7] stats:completed, stats:failed, stats:stalled.
-- ARGV[1] worker; ARGV[2] its start; ARGV[3] milliseconds to live; ARGV[4] what it is;
-- ARGV[5] how it is; ARGV[6] its node; ARGV[7..9] how many completed, failed, stalled.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[4])
redis.call('HSET', KEYS[4], ARGV[1], string.sub(ARGV[5], 1, -2) .. ',"last_heartbeat":' .. time[1] .. '}')
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
redis.call('PEXPIRE', KEYS[4], ARGV[3])
for i = 5, 7 do
  if ARGV[i + 2] ~= '0' then
    redis.call('HINCRBY', KEYS[i], ARGV[6], ARGV[i + 2])
  end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('HDEL', KEYS[3], id)
  redis.call('HDEL', KEYS[4], id)
  redis.call('ZREM', KEYS[2], id)
end
