-- Removes a dead letter (forget_letter.lua).
--   KEYS[1]  the letter
--   KEYS[2]  wait of the dead-letter queue
--   KEYS[3]  events of the dead-letter queue
--   ARGV[1]  job id
--   ARGV[2]  the letter as it was read: unless it is still the same, nothing happens; '' removes any
-- Returns how many entries were removed.
if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'data') ~= ARGV[2] then
  return 0
end
local gone = forgetLetter(KEYS[1], KEYS[2], KEYS[3], ARGV[1])
-- An entry of the list without a letter would be counted for ever.
return gone == 1 and 1 or redis.call('LREM', KEYS[2], 0, ARGV[1])
