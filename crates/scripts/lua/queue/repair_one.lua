-- Repairs one job (repair.lua).
--   KEYS[1]  key prefix of the queue
--   ARGV[1]  job id
repair(KEYS[1], ARGV[1])
