-- Tells in the feed that another server answers than before: it may lack the newest events.
--   KEYS[1]  the id of the server that filled the stream last
--   KEYS[2]  the stream
--   ARGV[1]  the id of the server that answers now
--   ARGV[2]  '1': another server answered this process before; '': this process has just started
--   ARGV[3…] id and text of the event that tells it
-- However many nodes notice a restart, it is told once. A process that has just started, and finds no id, has noticed none.
-- Returns 1 if it is told, else 0.
local known = redis.call('GET', KEYS[1])
if known == ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
if not known and ARGV[2] == '' then return 0 end
redis.call('XADD', KEYS[2], '*', 'id', ARGV[3], 'event', ARGV[4])
return 1
