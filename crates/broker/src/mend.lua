-- What other software left in a job's key that BullMQ's scripts stumble over, in the middle of what they
-- do: a number that is none, a parent that is no JSON, something that is not a job at all. It is put
-- right, and the job marked, so that whoever takes it fails it with a reason. See scripts/mend.rs.

-- Ids that no job can have: their keys are the queue's own. names.rs has the same list.
local PARTS = {"active", "completed", "delayed", "events", "failed", "id", "limiter", "marker", "meta", "paused",
  "pc", "prioritized", "repeat", "stalled", "stalled-check", "wait", "waiting-children"}

-- As HINCRBY reads it.
local function isCount(text)
  return text == '0' or (#text <= 15 and text:match('^%-?[1-9]%d*$') ~= nil)
end

local function isFinite(text)
  local number = tonumber(text)
  return number ~= nil and number == number and math.abs(number) < 2 ^ 53
end

local function readable(parent)
  local ok, told = pcall(cjson.decode, parent)
  return ok and type(told) == 'table' and type(told.id) == 'string' and type(told.queueKey) == 'string'
end

-- What is wrong with the fields of a job, put right.
local function mendFields(key)
  local wrong
  local names = {'ats', 'atm', 'stc', 'priority', 'parent', 'parentKey'}
  local ats, atm, stc, priority, parent, parentKey = unpack(redis.call('HMGET', key, unpack(names)))
  for field, value in pairs({ats = ats, atm = atm, stc = stc}) do
    if value and not isCount(value) then
      redis.call('HDEL', key, field)
      wrong = 'its field ' .. field .. ' was no number'
    end
  end
  if priority and not isFinite(priority) then
    redis.call('HSET', key, 'priority', '0')
    wrong = 'its field priority was no number'
  end
  if parent and not readable(parent) then
    local queue, id = (parentKey or ''):match('^(.+):([^:]+)$')
    if queue then
      -- Whatever it said about failing: the parent must not wait for ever.
      redis.call('HSET', key, 'parent', cjson.encode({id = id, queueKey = queue, fpof = true}))
    else
      redis.call('HDEL', key, 'parent', 'parentKey')
    end
    wrong = 'its field parent was not readable'
  end
  return wrong
end

local function mend(prefix, id)
  for _, part in ipairs(PARTS) do
    if id == part then
      -- It stands for nothing. Where it was put, no job of this id will ever be.
      redis.pcall('LREM', prefix .. 'active', 0, id)
      redis.pcall('SREM', prefix .. 'stalled', id)
      redis.pcall('ZREM', prefix .. 'delayed', id)
      redis.pcall('DEL', prefix .. id .. ':lock')
      return
    end
  end
  local key = prefix .. id
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then
    return
  end
  local wrong
  if kind == 'hash' then
    wrong = mendFields(key)
  else
    redis.call('RENAME', key, key .. ':unreadable')
    wrong = 'its key held a ' .. kind .. ', which is called ' .. key .. ':unreadable now'
  end
  -- What a job keeps beside its hash.
  for part, right in pairs({dependencies = 'set', processed = 'hash', failed = 'hash', unsuccessful = 'zset'}) do
    local found = redis.call('TYPE', key .. ':' .. part).ok
    if found ~= 'none' and found ~= right then
      redis.call('RENAME', key .. ':' .. part, key .. ':' .. part .. ':unreadable')
      wrong = 'its ' .. part .. ' were a ' .. found
    end
  end
  if wrong and redis.call('HEXISTS', key, 'defa') == 0 then
    redis.call('HSET', key, 'defa', 'unreadable job: ' .. wrong)
  end
end

-- For promoteDelayedJobs, which takes up to a thousand jobs out of their list before it looks at the first:
-- one that it stumbled over would take the others along.
local function mended(promote)
  return function(delayedKey, markerKey, targetKey, prioritizedKey, eventsKey, prefix, timestamp, ...)
    local last = (timestamp + 1) * 0x1000 - 1
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', delayedKey, 0, last, 'LIMIT', 0, 1000)) do
      mend(prefix, id)
    end
    return promote(delayedKey, markerKey, targetKey, prioritizedKey, eventsKey, prefix, timestamp, ...)
  end
end
