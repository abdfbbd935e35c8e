-- Asks or tells the circuit breaker of one outside service.
-- KEYS[1] its state; KEYS[2] its latest failures.
-- ARGV[1] 'ask', 'ok', 'failed', 'nothing' (the call was not made) or 'look'; ARGV[2] failures that open it; ARGV[3] within ms;
-- ARGV[4] ms it stays open; ARGV[5] ms a probe may take; ARGV[6] a name for this call.
-- Returns {state, ms to wait}: 'closed' and 'probe' let a call through, 'open' does not; 'opened' and
-- 'recovered' say that it is so from now on.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local threshold, within = tonumber(ARGV[2]), tonumber(ARGV[3])
local pause, patience = tonumber(ARGV[4]), tonumber(ARGV[5])
local found = redis.call('HMGET', KEYS[1], 'state', 'until', 'probe')
local state, untill, probe = found[1] or 'closed', tonumber(found[2] or 0), found[3]

local function open()
  redis.call('HSET', KEYS[1], 'state', 'open', 'until', now + pause, 'probe', '')
  redis.call('PEXPIRE', KEYS[1], pause + patience + 3600000)
  redis.call('DEL', KEYS[2])
end

if ARGV[1] == 'look' then return {state, math.max(0, untill - now)} end
if ARGV[1] == 'ask' then
  if state == 'closed' then return {'closed', 0} end
  -- A clock that was set back must not keep it open for longer than configured.
  local longest = state == 'open' and pause or patience
  if untill - now > longest then
    untill = now + longest
    redis.call('HSET', KEYS[1], 'until', untill)
  end
  local left = untill - now
  -- While one call probes, the others ask again soon.
  if state == 'half-open' then left = math.min(left, 250 + now % 750) end
  if left > 0 then return {'open', left} end
  -- Half-open: one call at a time probes; when it does not report back in time, the next one does.
  redis.call('HSET', KEYS[1], 'state', 'half-open', 'until', now + patience, 'probe', ARGV[6])
  return {'probe', 0}
end
if ARGV[1] == 'nothing' then
  -- The next call that asks is the probe instead.
  if state == 'half-open' and probe == ARGV[6] then redis.call('HSET', KEYS[1], 'until', now) end
  return {state, 0}
end
if ARGV[1] == 'ok' then
  if state ~= 'half-open' or probe ~= ARGV[6] then return {'closed', 0} end
  redis.call('DEL', KEYS[1], KEYS[2])
  return {'recovered', 0}
end
if state == 'half-open' then
  -- Calls begun before it opened may still come back; only the probe's outcome counts.
  if probe == ARGV[6] then open() end
  return {'open', pause}
end
if state == 'open' then return {'open', math.max(0, untill - now)} end
redis.call('ZADD', KEYS[2], now, ARGV[6])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - within)
redis.call('PEXPIRE', KEYS[2], within)
if redis.call('ZCARD', KEYS[2]) >= threshold then
  open()
  return {'opened', pause}
end
return {'closed', 0}
