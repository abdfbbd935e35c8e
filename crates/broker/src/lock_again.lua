-- Locks a job again that nobody has taken since our lock on it expired.
-- KEYS[1] active; KEYS[2] the lock; KEYS[3] stalled; ARGV[1] job id; ARGV[2] token; ARGV[3] milliseconds.
-- Returns 1, or 0 when the job is not active any more or somebody else holds it.
if redis.call('LPOS', KEYS[1], ARGV[1])
  and redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3], 'NX') then
  redis.call('SREM', KEYS[3], ARGV[1])
  return 1
end
return 0
