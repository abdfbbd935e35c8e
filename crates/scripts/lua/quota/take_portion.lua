-- Takes a portion of what a subject may have in the present window.
-- KEYS[1] hash with the counts of the present window: 'window' its number, every other field a subject.
-- ARGV[1] length of a window in ms; ARGV[2] most in a window; ARGV[3] the subject; ARGV[4] wanted portion;
-- ARGV[5] most subjects.
-- Returns {granted, left, ms until the window ends}; granted is -1 if there are too many subjects to count another one.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local length, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local number = math.floor(now / length)
local ends = (number + 1) * length - now
local window = string.format('%.0f', number)
if redis.call('HGET', KEYS[1], 'window') ~= window then
  redis.call('UNLINK', KEYS[1])
  redis.call('HSET', KEYS[1], 'window', window)
  redis.call('PEXPIRE', KEYS[1], length * 2)
end
local subject = 's:' .. ARGV[3]
local used = redis.call('HGET', KEYS[1], subject)
if not used and redis.call('HLEN', KEYS[1]) > tonumber(ARGV[5]) then return {-1, 0, ends} end
local left = most - tonumber(used or '0')
if left <= 0 then return {0, 0, ends} end
-- The last permits are handed out one by one: what one node holds unused, another one misses.
local granted = math.max(1, math.min(tonumber(ARGV[4]), math.floor(left / 16)))
redis.call('HINCRBY', KEYS[1], subject, granted)
return {granted, left - granted, ends}
