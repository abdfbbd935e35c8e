//! Queues, jobs, dead letters, schedules, rate limits and circuit breakers.
