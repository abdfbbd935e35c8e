-- Goes before BullMQ's extendLocks. A Redis that is out of memory refuses a script only up to its first write
-- command that needs no memory: SREM is one. Without it all locks would expire while nothing can be added, and
-- jobs that could make room would not be allowed to end.
redis.call('SREM', KEYS[1], '')
