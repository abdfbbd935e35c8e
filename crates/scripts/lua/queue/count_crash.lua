-- Counts a crash of the worker that ran a job, in the field where BullMQ counts stalls, while its lock exists.
-- KEYS[1] job; KEYS[2] its lock; ARGV[1] token of the worker that died; ARGV[2] crashes allowed.
-- `defa` is BullMQ's field for "the next worker fails this job instead of running it".
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return
end
local crashes = redis.call('HINCRBY', KEYS[1], 'stc', 1)
if crashes > tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'defa', 'its worker died ' .. crashes .. ' times while working on it')
end
