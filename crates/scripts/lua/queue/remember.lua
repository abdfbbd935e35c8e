-- Adds operations to the log of a rate limit that began before it was kept, or left it before its window became longer.
-- KEYS[1] grants; KEYS[2] the windows, and since when KEYS[1] has every grant: both as `take_permit.lua` keeps them.
-- ARGV[1] window in microseconds; ARGV[2] since when KEYS[1] has every grant after this call, or empty: another call follows;
-- then of each operation: the key under which it counts, the earliest and the latest moment at which it may have begun.
-- Moments are microseconds by the clock of this server. Returns how many operations it has added, and the present moment.
-- Without KEYS[2] it adds none: nobody has asked for a permit since this server lost its data.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function whole(number) return string.format('%.0f', number) end

local stored = redis.call('GET', KEYS[2])
-- What was read may lack what began before this server lost its data again.
if not stored then return {0, whole(now)} end
local longest = 0
for length, kept_till in string.gmatch(stored, '(%d+):(%d+)') do
  if tonumber(kept_till) > now then longest = math.max(longest, tonumber(length)) end
end
local since = math.max(tonumber(string.match(stored, 's(%d+)$') or '') or 0, now - longest)
longest = math.max(longest, tonumber(ARGV[1]))
-- As in `take_permit.lua`: an operation begins within the slack, and counts from its end.
local longest_slack = 50000
local keep = math.ceil((longest + 2 * longest_slack) / 1000)

local added = 0
for i = 3, #ARGV, 3 do
  local member, earliest, latest = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
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
if ARGV[2] ~= '' and tonumber(ARGV[2]) < since then
  local kept = (keep + 3600000) * 1000
  redis.call('SET', KEYS[2], whole(longest) .. ':' .. whole(now + kept) .. ' s' .. ARGV[2], 'PX', keep + 3600000)
end
return {added, whole(now)}
