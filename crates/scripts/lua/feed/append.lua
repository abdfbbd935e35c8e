-- Appends events to the feed, unless another node relays by now.
--   KEYS[1]  the lease of the relay: "<token> <holder>"
--   KEYS[2]  the stream
--   KEYS[3]  ids of the events of the last call
--   ARGV[1]  "<token> <holder>" of the node that relays
--   ARGV[2]  about how many entries are kept
--   ARGV[3…] id and text of each event
-- A relay that died before it settled its rows sends them again: events of the last call are not appended twice.
-- Returns -1 if another node relays, else how many events were appended.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
local ids, appended = {}, 0
for at = 3, #ARGV, 2 do
  local id = ARGV[at]
  ids[#ids + 1] = id
  if redis.call('SISMEMBER', KEYS[3], id) == 0 then
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'id', id, 'event', ARGV[at + 1])
    appended = appended + 1
  end
end
if #ids > 0 then
  redis.call('DEL', KEYS[3])
  redis.call('SADD', KEYS[3], unpack(ids))
  redis.call('EXPIRE', KEYS[3], 86400)
end
return appended
