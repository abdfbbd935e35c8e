-- Removes a dead letter from its queue, unless a worker has it. Returns how many were removed.
local function forgetLetter(letter, wait, events, id)
  -- A caller that removes many begins with the oldest, which are at the end.
  if redis.call('EXISTS', letter) == 0 or redis.call('LREM', wait, -1, id) == 0 then
    return 0
  end
  redis.call('DEL', letter)
  redis.call('XADD', events, '*', 'event', 'removed', 'jobId', id, 'prev', 'wait')
  return 1
end
