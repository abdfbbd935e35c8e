-- Publishes that a node has changed the number of its workers, and remembers it unless it was a coordinator's
-- decision, which is remembered already.
-- KEYS[1] scaling:history. ARGV[1] channel; ARGV[2] the event; ARGV[3] what to remember, or '';
-- ARGV[4] how many are remembered.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('PUBLISH', ARGV[1], string.sub(ARGV[2], 1, -2) .. ',"timestamp":' .. now .. '}')
if ARGV[3] ~= '' then
  redis.call('LPUSH', KEYS[1], string.sub(ARGV[3], 1, -2) .. ',"timestamp":' .. now .. '}')
  redis.call('LTRIM', KEYS[1], 0, ARGV[4] - 1)
end
