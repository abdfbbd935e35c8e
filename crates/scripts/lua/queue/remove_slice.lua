-- Removes jobs of one list or set, each with removeJob and without its children.
--   KEYS[1]  the list or set
--   KEYS[2]  repeat
--   KEYS[3]  events
--   ARGV[1]  key prefix
--   ARGV[2]  which of them it is: wait, active, paused, delayed, …
--   ARGV[3]  how many to pass over; the oldest come first in lists
--   ARGV[4]  how many to look at
--   ARGV[5]  how many to remove at most
--   ARGV[6]  only those that nothing has happened to since then, in ms
--   ARGV[7]  '1': also those that are locked
-- Returns how many it has looked at, the ids of those that are gone, and how many were added to the list's end.
local key, prefix, state = KEYS[1], ARGV[1], ARGV[2]
local skip, count, most, since = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
-- A Redis that is out of memory runs a script whose first write command needs none.
rcall('SREM', prefix .. 'stalled', '')
local isList = rcall('TYPE', key).ok == 'list'
local ids, first
local size = 0
if isList then
  size = rcall('LLEN', key)
  local last = size - skip - 1
  first = math.max(0, last - count + 1)
  ids = last < 0 and {} or rcall('LRANGE', key, first, last)
else
  ids = rcall('ZRANGE', key, skip, skip + count - 1)
end

local isPart = {}
for _, part in ipairs(PARTS) do
  isPart[part] = true
end

-- Removes one job with all its keys; 1 if it is gone.
local function removeKnown(id, jobKey)
  if isPart[id] then
    -- This id belongs to the queue: only the entry is removed, not the key of this name.
    return isList and 1 or rcall('ZREM', key, id)
  end
  local times = rcall('HMGET', jobKey, 'finishedOn', 'processedOn', 'timestamp')
  if (tonumber(times[1] or times[2] or times[3] or '') or 0) > since then
    return 0
  end
  if ARGV[7] == '1' then
    rcall('DEL', jobKey .. ':lock')
  end
  return one({jobKey, KEYS[2]}, {id, '0', prefix})
end

local gone = {}
local function remove(id, index)
  local jobKey = prefix .. id
  if isList then
    -- Emptied, and removed at the end: the indexes of the others must not change meanwhile.
    rcall('LSET', key, index, '')
    state_of[jobKey] = state
  end
  local ok, answer = pcall(removeKnown, id, jobKey)
  if not ok then
    -- Other software has left a malformed job.
    pcall(repair, prefix, id)
    ok, answer = pcall(removeKnown, id, jobKey)
  end
  if ok and answer == 1 then
    gone[#gone + 1] = id
  elseif isList then
    rcall('LSET', key, index, id)
  end
  state_of[jobKey] = nil
end

local come = 0
if isList then
  for at = #ids, 1, -1 do
    if #gone == most then break end
    remove(ids[at], first + at - 1)
  end
  come = math.max(0, rcall('LLEN', key) - size)
  if #gone > 0 then
    rcall('LREM', key, -#gone, '')
  end
else
  for _, id in ipairs(ids) do
    if #gone == most then break end
    remove(id)
  end
end
if #gone > 0 then
  rcall('XADD', KEYS[3], '*', 'event', 'cleaned', 'count', #gone)
end
return {#ids, gone, come}
