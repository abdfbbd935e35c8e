-- Locks a job again for whoever runs it, when nobody else has it: its lock expired in an outage, or Redis
-- has forgotten that it was taken and has it waiting.
-- KEYS: 1 active, 2 wait, 3 prioritized, 4 stalled, 5 the job, 6 its lock.
-- ARGV: 1 job id, 2 token, 3 the lock's milliseconds, 4 when the job was added, 5 when its run began.
-- Returns 1, or 0 when it has ended or somebody else has it.
local id = ARGV[1]
local holder = redis.call('GET', KEYS[6])
if holder and holder ~= ARGV[2] then
  return 0
end
if not redis.call('LPOS', KEYS[1], id) then
  local known = redis.call('HMGET', KEYS[5], 'timestamp', 'finishedOn')
  -- Another one may have been added with the same id meanwhile.
  if known[1] ~= ARGV[4] or known[2] then
    return 0
  end
  -- It was the next to be taken: at the end of the list.
  if redis.call('ZREM', KEYS[3], id) == 0 and redis.call('LREM', KEYS[2], -1, id) == 0 then
    return 0
  end
  redis.call('LPUSH', KEYS[1], id)
  redis.call('HINCRBY', KEYS[5], 'ats', 1)
  redis.call('HSET', KEYS[5], 'processedOn', ARGV[5])
end
redis.call('SET', KEYS[6], ARGV[2], 'PX', ARGV[3])
redis.call('SREM', KEYS[4], id)
return 1
