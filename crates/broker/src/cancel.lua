-- Asks whoever runs a job to drop it. See consumer/cancel.rs.
-- KEYS[1] active; KEYS[2] the job; ARGV[1] its id; ARGV[2] reason; ARGV[3] channel.
-- Returns 1: told; 0: it does not run; -1: there is no such job.
if redis.call('EXISTS', KEYS[2]) == 0 then return -1 end
if not redis.call('LPOS', KEYS[1], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[2], 'cxl', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1
