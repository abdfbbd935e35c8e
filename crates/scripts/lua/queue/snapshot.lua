-- Writes a snapshot: one JSON object whose list comes last, so that an update need not send the list.
--   KEYS[1]  the key
--   ARGV[1]  revision
--   ARGV[2]  JSON object without its closing brace
--   ARGV[3]  name of the list
--   ARGV[4]  JSON array, or '' to keep the one that is there
--   ARGV[5]  milliseconds until it expires
-- Returns 1 when the key now has this revision or a newer one, 0 when there is no list to keep.
local old = redis.call('GET', KEYS[1])
if old then
  local revision = tonumber(string.match(old, '^{"revision":(%d+)'))
  if revision and revision > tonumber(ARGV[1]) then
    return 1
  end
end
local head = ',"' .. ARGV[3] .. '":'
local tail
if ARGV[4] ~= '' then
  tail = head .. ARGV[4] .. '}'
elseif old then
  local at = string.find(old, head .. '[', 1, true)
  if not at then return 0 end
  tail = string.sub(old, at)
else
  return 0
end
redis.call('SET', KEYS[1], '{"revision":' .. ARGV[1] .. ',' .. string.sub(ARGV[2], 2) .. tail, 'PX', ARGV[5])
return 1
