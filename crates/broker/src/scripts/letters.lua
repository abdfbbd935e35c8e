-- Takes a dead letter out of its queue, unless somebody works on it. Returns how many that were.
local function forgetLetter(letter, wait, events, id)
  -- Whoever takes away many begins with the oldest, and those are at the end.
  if redis.call('EXISTS', letter) == 0 or redis.call('LREM', wait, -1, id) == 0 then
    return 0
  end
  redis.call('DEL', letter)
  redis.call('XADD', events, '*', 'event', 'removed', 'jobId', id, 'prev', 'wait')
  return 1
end
