-- Asks whoever runs a job to drop it. See consumer/cancel.rs.
-- The wish holds for the run that is going on: a job that is run again later must not be cancelled again.
-- KEYS[1] active; KEYS[2] the job; ARGV[1] its id; ARGV[2] reason; ARGV[3] channel.
-- Returns 1: told; 0: it does not run; -1: there is no such job.
if redis.call('EXISTS', KEYS[2]) == 0 then return -1 end
if not redis.call('LPOS', KEYS[1], ARGV[1]) then return 0 end
local run = redis.call('HGET', KEYS[2], 'processedOn') or '0'
redis.call('HSET', KEYS[2], 'cxl', run .. ':' .. ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1
