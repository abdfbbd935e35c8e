-- Writes a snapshot unless a newer revision stands there. See snapshots.rs.
-- KEYS[1] the key; ARGV[1] revision; ARGV[2] JSON fields without the closing brace;
-- ARGV[3] JSON array for the list `tickets`, or '' to keep the list in Redis; ARGV[4] seconds to keep.
-- Returns 1; 0 if there is no list to keep.
local old = redis.call('GET', KEYS[1])
if old then
  local revision = tonumber(string.match(old, '^{"revision":(%d+)'))
  if revision and revision > tonumber(ARGV[1]) then
    return 1
  end
end
local tail
if ARGV[3] ~= '' then
  tail = ',"tickets":' .. ARGV[3] .. '}'
elseif old then
  local at = string.find(old, ',"tickets":[', 1, true)
  if not at then return 0 end
  tail = string.sub(old, at)
else
  return 0
end
redis.call('SET', KEYS[1], '{"revision":' .. ARGV[1] .. ',' .. string.sub(ARGV[2], 2) .. tail, 'EX', ARGV[4])
return 1
