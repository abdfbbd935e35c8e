-- Takes a dead letter out of its queue, unless somebody works on it. Returns how many that were.
local function forgetLetter(letter, wait, events, id)
  if redis.call('LREM', wait, 0, id) == 0 then
    return 0
  end
  redis.call('DEL', letter)
  redis.call('XADD', events, '*', 'event', 'removed', 'jobId', id, 'prev', 'wait')
  return 1
end
