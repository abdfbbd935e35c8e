-- Runs a failed job again, with reprocessJob, and removes its dead letter (forget_letter.lua) in the same step:
-- concurrent replays of the same job run it once.
--   KEYS[1..9]   as reprocessJob has them
--   KEYS[10..12] the letter, wait and events of its queue
--   KEYS[13]     waiting-children
--   ARGV[1..6]   as reprocessJob has them
--   ARGV[7]      the letter as it was read; '' accepts any
--   ARGV[8]      other data; '' keeps its own
--   ARGV[9]      now in ms
-- Returns 1 it waits, 2 it waits for its children, 0 it has not failed, -1 there is no such job, -2 the letter has
-- changed; or the key of a child that has failed.
local jobKey, id = KEYS[1], ARGV[1]
if ARGV[7] ~= '' and rcall('HGET', KEYS[10], 'data') ~= ARGV[7] then
  return -2
end
if rcall('EXISTS', jobKey) == 0 then
  return -1
end
local answer = 0
if rcall('ZSCORE', KEYS[3], id) then
  local unsuccessful = jobKey .. ':unsuccessful'
  for _, child in ipairs(rcall('ZRANGE', unsuccessful, 0, -1)) do
    local queue, childId = child:match('^(.+):([^:]+)$')
    if queue and rcall('ZSCORE', queue .. ':failed', childId) then
      return child
    end
    -- The child was removed, or added anew by itself: there is nothing to wait for.
    rcall('ZREM', unsuccessful, child)
  end
  if ARGV[8] ~= '' then
    rcall('HSET', jobKey, 'data', ARGV[8])
  end
  -- A wish to cancel it and its crashes before the replay do not count any more.
  rcall('HDEL', jobKey, 'cxl', 'stc')
  if rcall('SCARD', jobKey .. ':dependencies') == 0 then
    answer = one({unpack(KEYS, 1, 9)}, {unpack(ARGV, 1, 6)})
  else
    rcall('ZREM', KEYS[3], id)
    rcall('HDEL', jobKey, 'finishedOn', 'processedOn', 'failedReason', 'atm')
    rcall('ZADD', KEYS[13], ARGV[9], id)
    moveChildBackToParentDependencies(jobKey, 'failed')
    rcall('XADD', KEYS[2], '*', 'event', 'waiting-children', 'jobId', id, 'prev', 'failed')
    answer = 2
  end
end
-- A parent that is about to fail because of this job, and that no worker has taken yet, waits for it again.
local parentKey = answer > 0 and rcall('HGET', jobKey, 'parentKey')
local reason = parentKey and rcall('HGET', parentKey, 'defa')
if reason and reason:match('^child .+ failed$') and rcall('ZCARD', parentKey .. ':unsuccessful') == 0 then
  local queue, parentId = parentKey:match('^(.+):([^:]+)$')
  if queue and (rcall('LREM', queue .. ':wait', 0, parentId) > 0
    or rcall('ZREM', queue .. ':prioritized', parentId) > 0
    or rcall('ZREM', queue .. ':delayed', parentId) > 0) then
    rcall('HDEL', parentKey, 'defa')
    rcall('ZADD', queue .. ':waiting-children', ARGV[9], parentId)
  end
end
-- A job that is completed or runs already needs no letter.
forgetLetter(KEYS[10], KEYS[11], KEYS[12], id)
return answer
