-- Adds the job of a dead letter anew, because its record is gone, and removes the letter (forget_letter.lua).
--   KEYS     as the script that adds has them; then the job, the letter, wait and events of its queue
--   ARGV     its three arguments; the letter as it was read; its id
-- Returns 1 it waits, -2 there is such a job or the letter has changed.
local last = #KEYS - 4
local job, letter, wait, events = unpack(KEYS, last + 1)
if rcall('HGET', letter, 'data') ~= ARGV[4] or rcall('EXISTS', job) == 1 then
  return -2
end
one({unpack(KEYS, 1, last)}, {unpack(ARGV, 1, 3)})
forgetLetter(letter, wait, events, ARGV[5])
return 1
