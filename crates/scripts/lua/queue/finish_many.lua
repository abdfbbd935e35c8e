-- Runs moveToFinished for many completed jobs in one call.
--   KEYS[1..14]  as moveToFinished has them; KEYS[12] is not used
--   KEYS[15..]   the key of each job
--   ARGV[1]      timestamp
--   ARGV[2]      key prefix
--   ARGV[3..]    for each job: id, result, whether to fetch the next, options, fields
-- Returns moveToFinished's answer for each job; an error is a table with one text.
local keys = {unpack(KEYS, 1, 14)}
local args = {0, ARGV[1], "returnvalue", 0, "completed", 0, ARGV[2], 0, 0}
local answers = {}
for job = 1, #KEYS - 14 do
  local at = 2 + (job - 1) * 5
  keys[12] = KEYS[14 + job]
  args[1], args[4], args[6], args[8], args[9] =
    ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]
  answers[job] = answerOf(one, keys, args)
end
for _, call in ipairs(putOff) do
  -- The jobs are finished, also when old ones cannot be removed.
  local ok, problem = pcall(unpack(call))
  if not ok then
    problem = type(problem) == "table" and problem.err or problem
    redis.log(redis.LOG_WARNING, "cannot remove old jobs of " .. ARGV[2] .. " " .. tostring(problem))
  end
end
return answers
