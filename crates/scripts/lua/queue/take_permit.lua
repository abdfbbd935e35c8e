-- Takes one permit of a rate limit, or returns how long to wait for one. A former permit can be given back before.
-- KEYS[1] settings of the limit; KEYS[2] grants, by the last moment at which their operations may begin;
-- KEYS[3] callers that wait, by their time; KEYS[4] holds: until when nobody gets a permit;
-- KEYS[5] the windows in microseconds that callers ask with, each with the moment until which grants are kept for it: as long as
-- the window after the last caller that asked with it. A window stands there only if no longer one is kept for longer. With a
-- history (ARGV[14]) `s` follows, and the moment since which KEYS[2] has every grant; then windows are kept for an hour more.
-- ARGV[1] max, ARGV[2] window in ms (both used when the settings say nothing);
-- ARGV[3] a unique id for this permit, or empty: only the former one is given back; ARGV[4] the caller;
-- ARGV[5] for how many ms this grant holds the limit, or empty; ARGV[6], ARGV[7] every how many grants one holds it longer,
-- and for how many ms, or empty; ARGV[8] the key under which the grant counts, once however often it is taken, or empty;
-- ARGV[9] … ARGV[13] of the permit to be given back: id or empty, member, round, score, former score;
-- ARGV[14] 1: the caller has a history of its operations, so no permit is granted while KEYS[2] may lack a part of the window.
-- Returns {0, microseconds within which the permit is to be used, round, score, former score}, or {milliseconds to wait, …},
-- or {-1, window in ms, max, …}: operations are missing that `remember.lua` adds; 0 if it only gives back.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function whole(number) return string.format('%.0f', number) end

if ARGV[9] ~= '' then
  -- Another caller may have counted the same key again since: that grant stays.
  if tonumber(redis.call('ZSCORE', KEYS[2], ARGV[10]) or '') == tonumber(ARGV[12]) then
    if ARGV[13] == '' then
      redis.call('ZREM', KEYS[2], ARGV[10])
    else
      redis.call('ZADD', KEYS[2], ARGV[13], ARGV[10])
    end
  elseif ARGV[9] == ARGV[10] then
    -- Its score was moved because the clock was set back.
    redis.call('ZREM', KEYS[2], ARGV[10])
  end
  local held = redis.call('HMGET', KEYS[4], 'grant', 'before', 'count', 'round')
  if held[1] == ARGV[9] then
    redis.call('HDEL', KEYS[4], 'grant', 'granted', 'next', 'before')
    if held[2] then
      -- It was the grant after which the limit rests: the next one is.
      redis.call('HSET', KEYS[4], 'count', held[2], 'round', whole((held[4] or 1) - 1))
    end
  end
  if not (held[1] == ARGV[9] and held[2]) and ARGV[11] ~= '' and ARGV[11] == (held[4] or '0') then
    redis.call('HSET', KEYS[4], 'count', whole(math.max(0, (held[3] or 0) - 1)))
  end
end
if ARGV[3] == '' then return 0 end

local set = redis.call('HMGET', KEYS[1], 'max', 'per')
local max, per = tonumber(set[1] or ARGV[1]), tonumber(set[2] or ARGV[2])
local limited = max and per
-- An operation begins a moment after its grant, within the slack. A grant counts from the end of its slack, and limits are
-- held until then, so that the beginnings keep to the limit too. A short window has a short slack.
local longest_slack = 50000
local slack = longest_slack
if limited then slack = math.max(5000, math.min(longest_slack, per * 25)) end

-- The longest hold counts. Holds from before the clock was set back last as long as they were meant to.
local till = 0
local names = {'since', 'till', 'granted', 'next'}
local holds = redis.call('HMGET', KEYS[4], unpack(names))
for i = 1, 3, 2 do
  local since, ends = tonumber(holds[i] or ''), tonumber(holds[i + 1] or '')
  if since and ends then
    if since > now + slack then
      ends = now + ends - since
      redis.call('HSET', KEYS[4], names[i], whole(now), names[i + 1], whole(ends))
    end
    till = math.max(till, ends)
  end
end
local hold, every, rest = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local has_history = ARGV[14] == '1'
if not limited and not hold and not every and till <= now then return {0, 3600000000, '', '0', ''} end

local window, known, free, former, counted, keep, complete = 0, 0, true, false, false, 0, true
local member = ARGV[3]
if ARGV[8] ~= '' then member = ARGV[8] end
-- A caller that has not come by then does not come any more.
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - slack * 4)
if limited then
  window = per * 1000
  -- Callers may ask with different windows for a moment, because the limit has changed since some of them read it. So the
  -- longest window says which grants are forgotten: a shorter one must not forget what a longer one counts.
  local stored = redis.call('GET', KEYS[5]) or ''
  local since = tonumber(string.match(stored, 's(%d+)$') or '')
  local till_then = now + window + 2 * longest_slack
  if has_history or since then till_then = till_then + 3600000000 end
  local longest, last, text = 0, 0, ''
  for length, kept_till in string.gmatch(stored, '(%d+):(%d+)') do
    length, kept_till = tonumber(length), tonumber(kept_till)
    if kept_till > now then
      longest = math.max(longest, length)
      if length > window then
        last = math.max(last, kept_till)
        text = text .. whole(length) .. ':' .. whole(kept_till) .. ' '
      end
    end
  end
  local is_longer = window > longest
  if has_history or since then
    -- What has left the longest window so far was forgotten. Without KEYS[5], that is everything.
    since = math.max(since or 0, now - longest)
    complete = not has_history or since <= now - window
    -- Some of it may be left, and would count twice when it is added again.
    if has_history and is_longer then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', whole(since)) end
  end
  longest = math.max(longest, window)
  keep = math.ceil((longest + 2 * longest_slack) / 1000)
  if till_then > last then
    text = text .. whole(window) .. ':' .. whole(till_then) .. ' '
    if since then text = text .. 's' .. whole(since) end
    redis.call('SET', KEYS[5], text, 'PX', math.ceil((till_then - now) / 1000))
  end
  if is_longer and redis.call('PTTL', KEYS[2]) < keep then redis.call('PEXPIRE', KEYS[2], keep) end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - longest - longest_slack)
  -- Grants from before the clock was set back would block all callers until that time comes again. They were
  -- granted, so they count from now on.
  local later = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. whole(now + longest_slack), '+inf')
  for _, id in ipairs(later) do
    redis.call('ZADD', KEYS[2], whole(now), id)
  end
  if #later > 0 then
    redis.call('DEL', KEYS[3])
  end
  -- Those that left the window a moment ago, too: a caller may have waited for that.
  known = redis.call('ZCOUNT', KEYS[2], '(' .. whole(now - window - slack), '+inf')
  if ARGV[8] ~= '' then
    former = redis.call('ZSCORE', KEYS[2], member)
    counted = former and tonumber(former) > now - window and max > 0
  end
  free = counted or redis.call('ZCOUNT', KEYS[2], '(' .. whole(now - window), '+inf') < max
end
if free and till <= now and not complete and not counted then return {-1, per, whole(max), '', ''} end
if free and till <= now then
  -- Counted from when it became possible, if that was a moment ago: otherwise a caller that asks a little late
  -- each time would slow down all. It is to be used within the slack from then on.
  local at = now
  if limited and not counted and known >= max and max > 0 then
    local left = redis.call('ZRANGE', KEYS[2], whole(-max), whole(-max), 'WITHSCORES')
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
    at = math.min(now, math.max(left[2] + window, last[2] - slack, now - slack * 0.6))
  end
  at = math.max(at, till)
  local latest = at + slack
  if limited then
    redis.call('ZADD', KEYS[2], whole(latest), member)
    redis.call('PEXPIRE', KEYS[2], whole(math.max(keep, redis.call('PTTL', KEYS[2]))))
  end
  redis.call('ZREM', KEYS[3], ARGV[4])
  local round = ''
  if hold or every then
    local pause, before = hold or 0, false
    if every then
      local counters = redis.call('HMGET', KEYS[4], 'count', 'round')
      local count = tonumber(counters[1] or 0) + 1
      round = counters[2] or '0'
      if count >= every then
        before, pause = count - 1, math.max(pause, rest)
        redis.call('HSET', KEYS[4], 'count', 0, 'round', whole(round + 1))
      else
        redis.call('HSET', KEYS[4], 'count', whole(count), 'round', round)
      end
    end
    redis.call('HDEL', KEYS[4], 'grant', 'granted', 'next', 'before')
    if pause > 0 then
      redis.call('HSET', KEYS[4], 'grant', ARGV[3], 'granted', whole(at), 'next', whole(latest + pause * 1000))
      if before then redis.call('HSET', KEYS[4], 'before', whole(before)) end
    end
    -- A limit that nobody has used for as long as it rests has rested: then the count begins anew.
    local keep = pause + (rest or 0) + math.ceil(slack / 1000) + 1000
    redis.call('PEXPIRE', KEYS[4], whole(math.max(keep, redis.call('PTTL', KEYS[4]))))
  end
  return {0, math.floor(latest - now), round, whole(latest), former or ''}
end
-- No caller is told to come later than this: the limit may be raised meanwhile.
local longest = 30000
if limited and max < 1 then return {math.max(1, math.min(per, longest)), 0, '', '', ''} end
local function wait(come)
  return {math.max(1, math.min(math.ceil((come - now) / 1000), longest)), 0, '', '', ''}
end
-- A caller that asks again before its time keeps its place.
local mine = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[4]) or '')
if mine and mine > now and mine >= till then return wait(mine) end
-- The n-th caller that waits is told to come when the n-th grant from now leaves the window. A caller that came in
-- time and got nothing, because another was late or faster, does not go to the end of the line.
local waiting
if mine then
  waiting = redis.call('ZCOUNT', KEYS[3], '-inf', string.format('(%.0f', mine))
else
  waiting = redis.call('ZCARD', KEYS[3])
end
local come = now
local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2] or now
if limited and not counted and known - max + waiting >= 0 then
  local place = whole(redis.call('ZCARD', KEYS[2]) - max + waiting)
  local leaves = redis.call('ZRANGE', KEYS[2], place, place, 'WITHSCORES')
  if leaves[2] then
    come = leaves[2] + window
  else
    come = math.max(now, last) + (window + slack) / max
  end
end
if till > now then
  -- After a hold, callers come one after the other.
  local gap = 1000
  if hold and hold > 0 then
    gap = hold * 1000 + slack
  elseif limited then
    gap = (window + slack) / max
  end
  come = math.max(come, till + waiting * gap)
end
redis.call('ZADD', KEYS[3], whole(come), ARGV[4])
redis.call('PEXPIRE', KEYS[3], math.ceil((math.max(come, last) - now + slack * 4) / 1000) + 1)
return wait(come)
