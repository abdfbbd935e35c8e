-- Reads scaling:history (KEYS[1], ARGV[1] entries of it), and after it the time in milliseconds.
local entries = redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)
local time = redis.call('TIME')
entries[#entries + 1] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return entries
