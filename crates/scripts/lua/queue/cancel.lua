-- Asks the worker that runs a job to cancel it. The request names the present attempt: a job that is tried again
-- later must not be cancelled again.
-- KEYS[1] active; KEYS[2] the job; ARGV[1] its id; ARGV[2] reason; ARGV[3] channel.
-- Returns 1 published; 0 it does not run; -1 there is no such job.
if redis.call('EXISTS', KEYS[2]) == 0 then return -1 end
if not redis.call('LPOS', KEYS[1], ARGV[1]) then return 0 end
local attempt = redis.call('HMGET', KEYS[2], 'timestamp', 'atm')
redis.call('HSET', KEYS[2], 'cxl', (attempt[1] or '0') .. '-' .. (attempt[2] or '0') .. ':' .. ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1
