-- Writes the dead letter of a job that is about to fail permanently. Runs in one transaction with the script that
-- fails it, and makes the same check first: does this worker hold the lock?
-- KEYS[1] lock of the job; KEYS[2] active list of its queue;
-- KEYS[3] the dead letter; KEYS[4] wait, KEYS[5] meta, KEYS[6] events, KEYS[7] marker of the dead-letter queue;
-- KEYS[8] the job.
-- ARGV[1] token; ARGV[2] job id; ARGV[3] name; ARGV[4] data; ARGV[5] options; ARGV[6] now in ms;
-- ARGV[7] channel and ARGV[8] message to publish.
if redis.call('GET', KEYS[1]) ~= ARGV[1] or not redis.call('LPOS', KEYS[2], ARGV[2])
  or redis.call('EXISTS', KEYS[8]) == 0 then
  return 0
end
-- A server that is out of memory runs a script whose first write command needs none. redis-server 7.0 refuses the whole
-- transaction then; Valkey 8 executes it, and without this the job would fail and its letter be refused.
redis.call('HDEL', KEYS[5], '')
if redis.call('EXISTS', KEYS[3]) == 1 then
  -- The job was replayed and has failed again: the newer letter replaces the older one.
  redis.call('LREM', KEYS[4], 0, ARGV[2])
  redis.call('DEL', KEYS[3])
end
redis.call('HSET', KEYS[3], 'name', ARGV[3], 'data', ARGV[4], 'opts', ARGV[5],
  'timestamp', ARGV[6], 'delay', '0', 'priority', '0')
local kept = redis.call('HGET', KEYS[5], 'opts.maxLenEvents')
if not kept then
  kept = '10000'
  redis.call('HSET', KEYS[5], 'opts.maxLenEvents', kept)
end
redis.call('LPUSH', KEYS[4], ARGV[2])
redis.call('ZADD', KEYS[7], 0, '0')
redis.call('XADD', KEYS[6], '*', 'event', 'added', 'jobId', ARGV[2], 'name', ARGV[3])
redis.call('XADD', KEYS[6], 'MAXLEN', '~', kept, '*', 'event', 'waiting', 'jobId', ARGV[2])
redis.call('PUBLISH', ARGV[7], ARGV[8])
return 1
