-- Runs addStandardJob, addPrioritizedJob or addDelayedJob for many jobs in one call.
--   KEYS  as the script has them
--   ARGV  for each job, the three arguments of the script
-- Returns the id of each job; an error is a table with one text.
local answers = {}
for at = 1, #ARGV, 3 do
  answers[#answers + 1] = answerOf(one, KEYS, {ARGV[at], ARGV[at + 1], ARGV[at + 2]})
end
return answers
