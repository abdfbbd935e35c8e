-- Takes or renews a lease that expires. Every new holder gets a larger fencing token.
-- KEYS[1] the lease: "<token> <holder>"; KEYS[2] the last token given out.
-- ARGV[1] the node that asks; ARGV[2] how long it lasts, in milliseconds.
-- Returns {1 or 0: ours or not, token, holder}.
local held = redis.call('GET', KEYS[1])
if held then
  local token, holder = string.match(held, '^(%d+) (.*)$')
  if holder == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {1, token, holder}
  end
  return {0, token or '0', holder or ''}
end
-- At least the time: a Redis that lost its data does not begin again with old tokens.
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local token = string.format('%.0f', math.max(last + 1, time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('SET', KEYS[2], token)
redis.call('SET', KEYS[1], token .. ' ' .. ARGV[1], 'PX', ARGV[2])
return {1, token, ARGV[1]}
