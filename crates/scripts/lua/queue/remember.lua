-- Adds operations to the log of a rate limit that began before it was kept, or left it before its window became longer.
-- KEYS[1] grants; KEYS[2] the longest window, and since when KEYS[1] has every grant: both as `take_permit.lua` keeps them.
-- ARGV[1] window in microseconds; ARGV[2] for how many microseconds KEYS[1] has every grant after this call, or empty: another
-- call follows; then of each operation: the key under which it counts, and its age in microseconds at most, and at least.
-- Returns how many operations it has added.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function whole(number) return string.format('%.0f', number) end

local longest, since = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) ?(%d*)$')
longest = tonumber(longest or 0)
since = math.max(tonumber(since or '') or 0, now - longest)
longest = math.max(longest, tonumber(ARGV[1]))
-- As in `take_permit.lua`: an operation begins within the slack, and counts from its end.
local longest_slack = 50000
local keep = math.ceil((longest + 2 * longest_slack) / 1000)

local added = 0
for i = 3, #ARGV, 3 do
  local member, earliest, latest = ARGV[i], now - ARGV[i + 1], now - ARGV[i + 2]
  -- KEYS[1] has what began later.
  if earliest <= since and latest > now - longest then
    local score = latest + longest_slack
    -- Another caller may have added it, or its key may have counted again since.
    if score > tonumber(redis.call('ZSCORE', KEYS[1], member) or 0) then
      redis.call('ZADD', KEYS[1], whole(score), member)
      added = added + 1
    end
  end
end
if added > 0 and redis.call('PTTL', KEYS[1]) < keep then redis.call('PEXPIRE', KEYS[1], keep) end
if ARGV[2] ~= '' and now - ARGV[2] < since then
  redis.call('SET', KEYS[2], whole(longest) .. ' ' .. whole(now - ARGV[2]), 'PX', keep + 3600000)
end
return added
