-- Takes one permit of a rate limit, or returns how long to wait for one.
-- KEYS[1] settings of the limit; KEYS[2] grants of the last window; KEYS[3] callers that wait, by their time.
-- ARGV[1] max, ARGV[2] window in ms (both used when the settings say nothing);
-- ARGV[3] a unique id for this permit; ARGV[4] the caller.
-- Returns {0, microseconds within which the permit is to be used}, or {milliseconds to wait, 0}.
local set = redis.call('HMGET', KEYS[1], 'max', 'per')
local max, per = tonumber(set[1] or ARGV[1]), tonumber(set[2] or ARGV[2])
if not max or not per then return {0, 3600000000} end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- A job begins a moment after its grant. Grants are remembered a little longer than the window, so that the
-- beginnings keep to the limit too.
local slack = math.max(5000, math.min(50000, per * 25))
local window = per * 1000 + slack
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - window - slack)
-- A caller that has not come by then does not come any more.
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - slack * 4)
-- Grants from before the clock was set back would block all callers until that time comes again. They were
-- granted, so they count from now on.
local later = redis.call('ZRANGEBYSCORE', KEYS[2], string.format('(%.0f', now + slack), '+inf')
for _, id in ipairs(later) do
  redis.call('ZADD', KEYS[2], string.format('%.0f', now), id)
end
if #later > 0 then
  redis.call('DEL', KEYS[3])
end
local known = redis.call('ZCARD', KEYS[2])
if redis.call('ZCOUNT', KEYS[2], '(' .. string.format('%.0f', now - window), '+inf') < max then
  -- Counted from when it became possible, if that was a moment ago: otherwise a caller that asks a little late
  -- each time would slow down all. It is to be used within the slack from then on.
  local granted = now
  if known >= max and max > 0 then
    local left = redis.call('ZRANGE', KEYS[2], known - max, known - max, 'WITHSCORES')
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
    granted = math.min(now, math.max(left[2] + window, last[2], now - slack * 0.6))
  end
  redis.call('ZADD', KEYS[2], string.format('%.0f', granted), ARGV[3])
  redis.call('ZREM', KEYS[3], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], math.ceil((window + slack) / 1000))
  return {0, math.floor(granted + slack - now)}
end
-- No caller is told to come later than this: the limit may be raised meanwhile.
local longest = 30000
if max < 1 then return {math.min(per, longest), 0} end
local function wait(come)
  return {math.max(1, math.min(math.ceil((come - now) / 1000), longest)), 0}
end
-- A caller that asks again before its time keeps its place.
local mine = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[4]) or '')
if mine and mine > now then return wait(mine) end
-- The n-th caller that waits is told to come when the n-th grant from now leaves the window. A caller that came in
-- time and got nothing, because another was late or faster, does not go to the end of the line.
local waiting
if mine then
  waiting = redis.call('ZCOUNT', KEYS[3], '-inf', string.format('(%.0f', mine))
else
  waiting = redis.call('ZCARD', KEYS[3])
end
local come
local leaves = redis.call('ZRANGE', KEYS[2], known - max + waiting, known - max + waiting, 'WITHSCORES')
local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2] or now
if leaves[2] then
  come = leaves[2] + window
else
  come = math.max(now, last) + window / max
end
redis.call('ZADD', KEYS[3], string.format('%.0f', come), ARGV[4])
redis.call('PEXPIRE', KEYS[3], math.ceil((math.max(come, last) - now + slack * 4) / 1000) + 1)
return wait(come)
