-- What other software left in a job's key that BullMQ's scripts stumble over, in the middle of what they
-- do: a counter that is no number, a parent that is no JSON, something that is not a job at all. It is put
-- right, and the job marked, so that whoever takes it fails it with a reason. See scripts/mend.rs.
local function mend(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then
    return
  end
  local wrong
  if kind ~= 'hash' then
    redis.call('RENAME', key, key .. ':unreadable')
    wrong = 'its key held a ' .. kind .. ', which is called ' .. key .. ':unreadable now'
  else
    for _, field in ipairs({'ats', 'atm', 'stc'}) do
      local value = redis.call('HGET', key, field)
      if value and (not value:match('^%-?%d+$') or #value > 15) then
        redis.call('HDEL', key, field)
        wrong = 'its field ' .. field .. ' was no number'
      end
    end
    local parent = redis.call('HGET', key, 'parent')
    if parent then
      local readable, told = pcall(cjson.decode, parent)
      if not readable or type(told) ~= 'table' or type(told.id) ~= 'string'
        or type(told.queueKey) ~= 'string' then
        local queue, id = (redis.call('HGET', key, 'parentKey') or ''):match('^(.+):([^:]+)$')
        if queue then
          -- Whatever it said about failing: the parent must not wait for ever.
          redis.call('HSET', key, 'parent', cjson.encode({id = id, queueKey = queue, fpof = true}))
        else
          redis.call('HDEL', key, 'parent', 'parentKey')
        end
        wrong = 'its field parent was not readable'
      end
    end
  end
  if wrong and redis.call('HEXISTS', key, 'defa') == 0 then
    redis.call('HSET', key, 'defa', 'unreadable job: ' .. wrong)
  end
end
