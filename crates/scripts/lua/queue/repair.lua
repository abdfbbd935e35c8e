-- Functions that repair malformed jobs. Other software may leave in a job's key what makes BullMQ's scripts abort
-- in the middle: a counter that is no number, a parent that is no JSON, a key that is not a job. A script that
-- aborts is not rolled back. A repaired job is marked, so that the worker that takes it fails it with a reason.

-- Ids that no job can have: their keys belong to the queue. names.rs of the broker has the same list.
local PARTS = {"active", "completed", "delayed", "events", "failed", "id", "limiter", "marker", "meta", "paused",
  "pc", "prioritized", "repeat", "stalled", "stalled-check", "wait", "waiting-children"}

-- Whether HINCRBY accepts the text.
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

-- Repairs the fields of a job's hash; returns what was wrong.
local function repairFields(key)
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
      -- What it said about failing is lost; the parent must not wait for ever.
      redis.call('HSET', key, 'parent', cjson.encode({id = id, queueKey = queue, fpof = true}))
    else
      redis.call('HDEL', key, 'parent', 'parentKey')
    end
    wrong = 'its field parent was not readable'
  end
  return wrong
end

-- Repairs a job.
local function repair(prefix, id)
  for _, part in ipairs(PARTS) do
    if id == part then
      -- This id belongs to the queue: no job can have it, so it is taken out of the lists.
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
    wrong = repairFields(key)
  else
    redis.call('RENAME', key, key .. ':unreadable')
    wrong = 'its key held a ' .. kind .. ', which is called ' .. key .. ':unreadable now'
  end
  -- Keys that a job has beside its hash.
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

-- Wraps promoteDelayedJobs, which takes up to a thousand jobs out of their set before it reads the first: an abort
-- at one malformed job would lose all of them.
local function repairingDelayed(promote)
  return function(delayedKey, markerKey, targetKey, prioritizedKey, eventsKey, prefix, timestamp, ...)
    local last = (timestamp + 1) * 0x1000 - 1
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', delayedKey, 0, last, 'LIMIT', 0, 1000)) do
      repair(prefix, id)
    end
    return promote(delayedKey, markerKey, targetKey, prioritizedKey, eventsKey, prefix, timestamp, ...)
  end
end
