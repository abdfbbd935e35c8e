-- Removes one job with its children, with removeJob.
--   KEYS, ARGV  as removeJob has them
-- Returns as removeJob does: 1 removed or not there, 0 locked, -8 the next job of a schedule.
-- A Redis that is out of memory runs a script whose first write command needs none.
rcall('SREM', ARGV[3] .. 'stalled', '')
return one(KEYS, ARGV)
