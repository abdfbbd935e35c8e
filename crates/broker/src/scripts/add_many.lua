-- Runs addStandardJob, addPrioritizedJob or addDelayedJob for many jobs (see many.rs).
--   KEYS  as the script has them
--   ARGV  its three arguments for each job
-- Answers with the id of each; an error stands alone in a table.
local answers = {}
for at = 1, #ARGV, 3 do
  answers[#answers + 1] = answerOf(one, KEYS, {ARGV[at], ARGV[at + 1], ARGV[at + 2]})
end
return answers
