-- Removes an id from active whose job is gone.
--   KEYS[1]  the job
--   KEYS[2]  its lock
--   KEYS[3]  active
--   KEYS[4]  stalled
--   ARGV[1]  job id
--   ARGV[2]  token of the worker that had it
-- Does nothing when a job of the same id was added meanwhile and is locked by another worker.
local holder = redis.call('GET', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 0 and (not holder or holder == ARGV[2]) then
  redis.call('LREM', KEYS[3], 0, ARGV[1])
  redis.call('SREM', KEYS[4], ARGV[1])
  redis.call('DEL', KEYS[2])
end
