-- Locks a job again for the worker that runs it, when no other worker has it: its lock expired in an outage, or
-- Redis was restarted, has forgotten that the job was taken and has it waiting.
-- KEYS: 1 active, 2 wait, 3 prioritized, 4 delayed, 5 stalled, 6 the job, 7 its lock.
-- ARGV: 1 job id, 2 token, 3 the lock's milliseconds, 4 when the job was added, 5 when its run began,
--       6 the number of that run.
-- Returns 1 locked; 0 it has ended, waits again or another worker has it; -1 there is no such job.
local id = ARGV[1]
if redis.call('EXISTS', KEYS[6]) == 0 then
  return -1
end
local known = redis.call('HMGET', KEYS[6], 'timestamp', 'finishedOn', 'ats')
local runs = tonumber(known[3] or 0) or 0
local holder = redis.call('GET', KEYS[7])
-- Another job may have been added with the same id meanwhile.
if (known[1] or '0') ~= ARGV[4] or known[2] or (holder and holder ~= ARGV[2]) then
  return 0
end
if redis.call('LPOS', KEYS[1], id) then
  if runs ~= tonumber(ARGV[6]) then
    return 0
  end
else
  -- `ats` counts starts: one fewer than ours means that Redis has forgotten this run; as many means that the job
  -- went back to wait after it. A forgotten job was the next to be taken: the last one of the list.
  if runs ~= tonumber(ARGV[6]) - 1
    or (redis.call('ZREM', KEYS[3], id) == 0 and redis.call('ZREM', KEYS[4], id) == 0
      and redis.call('LREM', KEYS[2], -1, id) == 0) then
    return 0
  end
  redis.call('LPUSH', KEYS[1], id)
  redis.call('HSET', KEYS[6], 'ats', ARGV[6], 'processedOn', ARGV[5], 'delay', 0)
end
-- First a command that needs no memory: a Redis that is out of memory would refuse to lock, and the job could
-- not end.
redis.call('SREM', KEYS[5], id)
redis.call('SET', KEYS[7], ARGV[2], 'PX', ARGV[3])
return 1
