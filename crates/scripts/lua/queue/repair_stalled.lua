-- Repairs all jobs that the check for stalled jobs is about to move: those without a lock (repair.lua).
--   KEYS[1]  stalled
--   KEYS[2]  stalled-check: while it exists, BullMQ's check does nothing either
--   ARGV[1]  key prefix of the queue
if redis.call('EXISTS', KEYS[2]) == 1 then
  return
end
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if redis.call('EXISTS', ARGV[1] .. id .. ':lock') == 0 then
    repair(ARGV[1], id)
  end
end
