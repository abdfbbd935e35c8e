//! The Lua scripts that Redis runs for us, as finished texts.
//!
//! | folder | holds |
//! |---|---|
//! | `lua/queue/` | our own scripts about queues, and the parts that BullMQ's scripts are rewritten with |
//! | `lua/cluster/` | our own scripts about nodes, leases and decisions |
//! | `lua/feed/` | our own scripts about the feed |
//! | `lua/quota/` | our own script that counts requests |
//! | `build.rs` | finds BullMQ's scripts in the pinned `bullmq-official` crate and says how each is rewritten |
//! | `src/rewrite.rs` | the rewriting: pure functions |
//!
//! This is a leaf crate: `cargo build -p stampede-scripts` shows a mistake in a script's rewriting in seconds.
//! The broker makes `redis::Script`s of the texts and gives them KEYS and ARGV in the order documented here.
//! `{prefix}` is the key prefix of a queue, such as `bull:tickets:`; names such as `wait` are keys that begin with it.

#[cfg(test)]
mod rewrite;

/// The folder of BullMQ's own scripts on the machine that built this; for tests that compare them.
pub const BULLMQ_SCRIPTS: &str = env!("BULLMQ_SCRIPTS");

/// A script that `build.rs` has made.
macro_rules! made {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name, ".lua"))
    };
}

/// Constants, and a list of all of them.
macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*

        /// Name and text of every script of this module.
        pub const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

/// Scripts about the jobs of queues.
pub mod queue {
    scripts! {
        /// BullMQ's `moveToActive`: takes the next job and locks it. Repairs delayed jobs before it promotes them.
        ///
        /// KEYS: wait, active, prioritized, events, stalled, limiter, delayed, paused, meta, pc, marker.
        /// ARGV: prefix, now in ms, MessagePack of `{token, lockDuration, name}`.
        MOVE_TO_ACTIVE = made!("moveToActive");

        /// BullMQ's `moveToDelayed`: puts a job that runs back to wait for its time. Repairs delayed jobs before it
        /// promotes them.
        ///
        /// KEYS: marker, active, prioritized, delayed, the job, events, meta, stalled, wait, limiter, pc.
        /// ARGV: prefix, now in ms, job id, token, delay in ms, `1` if the attempt does not count, MessagePack of
        /// fields to set, `1` to fetch the next job, MessagePack as of [`MOVE_TO_ACTIVE`].
        MOVE_TO_DELAYED = made!("moveToDelayed");

        /// BullMQ's `moveToFinished`: completes or fails a job. Repairs delayed jobs before it promotes them.
        ///
        /// KEYS: wait, active, prioritized, events, stalled, limiter, delayed, paused, meta, pc, completed or failed,
        /// the job, metrics:completed or metrics:failed, marker.
        /// ARGV: job id, now in ms, `returnvalue` or `failedReason`, its value, `completed` or `failed`, `1` to fetch
        /// the next job, prefix, MessagePack of options, MessagePack of fields to set.
        MOVE_TO_FINISHED = made!("moveToFinished");

        /// BullMQ's `moveToFinished` as it is, for the transaction that fails a job permanently: it does not fetch
        /// the next job, so it promotes none. KEYS and ARGV as of [`MOVE_TO_FINISHED`].
        MOVE_TO_FINISHED_UNCHANGED = made!("moveToFinished-unchanged");

        /// BullMQ's `retryJob`: puts a job that runs back to wait at once. Repairs delayed jobs before it promotes
        /// them.
        ///
        /// KEYS: active, wait, paused, the job, meta, events, delayed, prioritized, pc, marker, stalled.
        /// ARGV: prefix, now in ms, `LPUSH` or `RPUSH`, job id, token, MessagePack of fields to set.
        RETRY_JOB = made!("retryJob");

        /// BullMQ's `moveToWaitingChildren`: lets a job that runs wait for its children.
        ///
        /// KEYS: active, waiting-children, the job, its dependencies, its unsuccessful children, stalled, events.
        /// ARGV: token, child key or empty, now in ms, job id, prefix.
        MOVE_TO_WAITING_CHILDREN = made!("moveToWaitingChildren-unchanged");

        /// BullMQ's `moveJobFromActiveToWait`: puts a job that runs back to wait, without an attempt.
        ///
        /// KEYS: active, wait, stalled, paused, meta, limiter, prioritized, marker, events.
        /// ARGV: job id, token, key of the job.
        MOVE_JOB_FROM_ACTIVE_TO_WAIT = made!("moveJobFromActiveToWait-unchanged");

        /// BullMQ's `moveStalledJobsToWait`: puts jobs without a lock back to wait.
        ///
        /// KEYS: stalled, wait, active, stalled-check, meta, paused, marker, events, repeat.
        /// ARGV: how often a job may stall, prefix, now in ms, interval of the check in ms.
        MOVE_STALLED_JOBS_TO_WAIT = made!("moveStalledJobsToWait-unchanged");

        /// BullMQ's `removeUnprocessedChildren`: removes the children of a job that no worker has begun.
        ///
        /// KEYS: the job, meta. ARGV: prefix, job id.
        REMOVE_UNPROCESSED_CHILDREN = made!("removeUnprocessedChildren-unchanged");

        /// BullMQ's `updateJobScheduler`: adds the next job of a schedule.
        ///
        /// KEYS: repeat, delayed, wait, paused, meta, prioritized, marker, id, events, pc, the job, active.
        /// ARGV: due time in ms, schedule id, payload, MessagePack of options, now in ms, prefix, job id.
        UPDATE_JOB_SCHEDULER = made!("updateJobScheduler-unchanged");

        /// BullMQ's `updateProgress`. KEYS: the job, events, meta. ARGV: job id, progress as JSON.
        UPDATE_PROGRESS = made!("updateProgress-unchanged");

        /// BullMQ's `addLog`. KEYS: the job, its log. ARGV: job id, line, how many lines are kept or empty.
        ADD_LOG = made!("addLog-unchanged");

        /// BullMQ's `extendLocks`, also on a Redis that is out of memory: renews locks.
        ///
        /// KEYS: stalled. ARGV: prefix, MessagePack of tokens, MessagePack of job ids, lock duration in ms.
        EXTEND_LOCKS = made!("extend_locks");

        /// BullMQ's `moveToFinished` for many completed jobs.
        ///
        /// KEYS: as of [`MOVE_TO_FINISHED`] (the twelfth is not used), then the key of each job.
        /// ARGV: now in ms, prefix; then for each job: id, result, `1` to fetch the next, options, fields.
        FINISH_MANY = made!("finish_many");

        /// BullMQ's `addStandardJob` for many jobs.
        ///
        /// KEYS: wait, paused, meta, id, completed, delayed, active, events, marker.
        /// ARGV: for each job: MessagePack of what it is, payload, MessagePack of options.
        ADD_MANY_STANDARD = made!("add_many_standard");

        /// BullMQ's `addPrioritizedJob` for many jobs.
        ///
        /// KEYS: marker, meta, id, prioritized, delayed, completed, active, events, pc.
        /// ARGV: as of [`ADD_MANY_STANDARD`].
        ADD_MANY_PRIORITIZED = made!("add_many_prioritized");

        /// BullMQ's `addDelayedJob` for many jobs.
        ///
        /// KEYS: marker, meta, id, delayed, completed, events. ARGV: as of [`ADD_MANY_STANDARD`].
        ADD_MANY_DELAYED = made!("add_many_delayed");

        /// Removes a job with its children, with BullMQ's `removeJob`; its parent fails.
        ///
        /// KEYS: the job, repeat. ARGV: job id, `1`, prefix.
        REMOVE = made!("remove");

        /// Removes jobs of one list or set without their children, with BullMQ's `removeJob`; their parents fail.
        ///
        /// KEYS: the list or set, repeat, events.
        /// ARGV: prefix, name of the list or set, how many to skip, to look at, to remove at most, time in ms, `1` to
        /// remove locked jobs too.
        REMOVE_SLICE = made!("remove_slice");

        /// Runs a failed job again, with BullMQ's `reprocessJob`, and removes its dead letter.
        ///
        /// KEYS: the job, events, failed, wait, meta, active, marker, prioritized, pc; of the dead-letter queue: the
        /// letter, wait, events; waiting-children.
        /// ARGV: six of `reprocessJob`, the letter as it was read or empty, other data or empty, now in ms.
        REPLAY = made!("replay");

        /// Adds the job of a dead letter anew, with BullMQ's `addStandardJob`, and removes the letter.
        ///
        /// KEYS: as of [`ADD_MANY_STANDARD`]; the job; of the dead-letter queue: the letter, wait, events.
        /// ARGV: three as of [`ADD_MANY_STANDARD`], the letter as it was read, job id.
        REPLAY_ANEW_STANDARD = made!("replay_anew_standard");

        /// Adds the job of a dead letter anew, with BullMQ's `addPrioritizedJob`, and removes the letter.
        ///
        /// KEYS: as of [`ADD_MANY_PRIORITIZED`]; the job; of the dead-letter queue: the letter, wait, events.
        /// ARGV: as of [`REPLAY_ANEW_STANDARD`].
        REPLAY_ANEW_PRIORITIZED = made!("replay_anew_prioritized");

        /// Repairs a malformed job and marks it as failed. KEYS: prefix. ARGV: job id.
        REPAIR_ONE = made!("repair_one");

        /// Repairs all malformed jobs without a lock. KEYS: stalled, stalled-check. ARGV: prefix.
        REPAIR_STALLED = made!("repair_stalled");

        /// Writes the dead letter of a job that is about to fail permanently.
        ///
        /// KEYS: lock of the job, active; of the dead-letter queue: the letter, wait, meta, events, marker; the job.
        /// ARGV: token, job id, name, data, options, now in ms, channel, message.
        DEAD_LETTER = include_str!("../lua/queue/dead_letter.lua");

        /// Removes a dead letter.
        ///
        /// KEYS: of the dead-letter queue: the letter, wait, events. ARGV: job id, the letter as it was read or empty.
        PURGE_LETTER = made!("purge_letter");

        /// Locks a job again for the worker that runs it.
        ///
        /// KEYS: active, wait, prioritized, delayed, stalled, the job, its lock.
        /// ARGV: job id, token, lock duration in ms, when the job was added, when its run began, number of that run.
        TAKE_BACK = include_str!("../lua/queue/take_back.lua");

        /// Counts a crash of the worker that ran a job. KEYS: the job, its lock. ARGV: token, crashes allowed.
        COUNT_CRASH = include_str!("../lua/queue/count_crash.lua");

        /// Removes an id from active whose job is gone.
        ///
        /// KEYS: the job, its lock, active, stalled. ARGV: job id, token.
        FORGET_JOB = include_str!("../lua/queue/forget_job.lua");

        /// Asks the worker that runs a job to cancel it. KEYS: active, the job. ARGV: job id, reason, channel.
        CANCEL = include_str!("../lua/queue/cancel.lua");

        /// Holds a rate limit: nobody gets a permit for so long.
        ///
        /// KEYS: holds of the limit. ARGV: milliseconds.
        HOLD_LIMIT = include_str!("../lua/queue/hold_limit.lua");

        /// Adds operations to the log of a rate limit that it does not know.
        ///
        /// KEYS: grants of the limit, the longest window that callers ask with. ARGV: window in microseconds, since when the
        /// grants are complete afterwards or empty; of each operation: the key under which it counts, the earliest and the latest
        /// moment at which it may have begun.
        REMEMBER = include_str!("../lua/queue/remember.lua");

        /// Takes one permit of a rate limit; a former permit can be given back before.
        ///
        /// KEYS: settings of the limit, its grants, its waiting callers, its holds, the longest window that callers ask with.
        /// ARGV: max and window in ms or empty, id of the permit or empty, caller, ms for which the grant holds the limit or
        /// empty, every how many grants one holds it longer and for how many ms or empty, key under which the grant counts or
        /// empty; of the permit to be given back: id or empty, member, round, score, former score; `1` if the caller has a
        /// history of its operations, or empty.
        TAKE_PERMIT = include_str!("../lua/queue/take_permit.lua");

        /// Ends the turn of an editor. KEYS: the turn. ARGV: its token.
        END_EDIT = include_str!("../lua/queue/end_edit.lua");

        /// Asks or tells a circuit breaker.
        ///
        /// KEYS: state, failures. ARGV: `ask`, `ok`, `failed`, `nothing` or `look`; failures that open it, within ms, ms
        /// it stays open, ms a probe may take, name of the call.
        BREAKER = include_str!("../lua/queue/breaker.lua");

        /// Writes a snapshot unless a newer one is there.
        ///
        /// KEYS: the key. ARGV: revision, JSON object without its closing brace, name of the list, JSON array or empty,
        /// ms until it expires.
        SNAPSHOT = include_str!("../lua/queue/snapshot.lua");
    }
}

/// Scripts about the feed.
pub mod feed {
    scripts! {
        /// Appends events to the feed. KEYS: lease of the relay, stream, ids of the last call. ARGV: the lease's value,
        /// about how many entries are kept; then id and text of each event.
        APPEND = include_str!("../lua/feed/append.lua");

        /// Tells that another server answers than before. KEYS: its id, stream. ARGV: the server's id, `1` or empty, id and
        /// text of the event.
        RESTARTED = include_str!("../lua/feed/restarted.lua");
    }
}

/// Scripts about quotas.
pub mod quota {
    scripts! {
        /// Takes a portion of a quota. KEYS: counts of the window. ARGV: ms of a window, most in it, subject, wanted portion,
        /// most subjects.
        TAKE_PORTION = include_str!("../lua/quota/take_portion.lua");
    }
}

/// Scripts about nodes, leases and decisions. Each documents its KEYS and ARGV in its first lines.
pub mod cluster {
    scripts! {
        /// Raises alerts. KEYS: fence, alerts. ARGV: fencing token or empty, how many are kept, channel, alerts.
        ALERT = include_str!("../lua/cluster/alert.lua");

        /// Writes a heartbeat. KEYS: hash. ARGV: field, JSON object, ms to live, name of the time, `sweep` or empty.
        ANNOUNCE = include_str!("../lua/cluster/announce.lua");

        /// Takes or keeps the name of a node. KEYS: holder. ARGV: the process, ms to live, a dead process or empty.
        CLAIM = include_str!("../lua/cluster/claim.lua");

        /// Publishes a decision to its node and remembers it.
        ///
        /// KEYS: fence, history. ARGV: fencing token, channel of the node, decision, how many are kept, channel of
        /// decisions, `cluster` in a Cluster.
        DECISION = include_str!("../lua/cluster/decision.lua");

        /// Lists entries that are not too old. KEYS: hash. ARGV: ms to live, name of the time, `sweep` or empty.
        ENTRIES = include_str!("../lua/cluster/entries.lua");

        /// Removes an entry of a process that is gone. KEYS: hash. ARGV: field, text that its entries contain.
        FORGET = include_str!("../lua/cluster/forget.lua");

        /// Reads the history and the time. KEYS: history. ARGV: how many entries.
        HISTORY = include_str!("../lua/cluster/history.lua");

        /// Takes or renews a lease. KEYS: lease, last fencing token. ARGV: the node, ms it lasts.
        LEASE = include_str!("../lua/cluster/lease.lua");

        /// Raises the fence. KEYS: fence. ARGV: fencing token, seconds it is kept.
        RAISE_FENCE = include_str!("../lua/cluster/raise_fence.lua");

        /// Gives the name of a node back. KEYS: holder. ARGV: the process.
        RELEASE = include_str!("../lua/cluster/release.lua");

        /// Gives a lease back. KEYS: lease. ARGV: fencing token and node.
        RELEASE_LEASE = include_str!("../lua/cluster/release_lease.lua");

        /// Keeps the counts of nodes that are gone. KEYS: fence, counters. ARGV: fencing token, nodes that are there.
        SETTLE = include_str!("../lua/cluster/settle.lua");

        /// Publishes a change of a node's workers. KEYS: history. ARGV: channel, event, what to remember, how many.
        STEP = include_str!("../lua/cluster/step.lua");

        /// Writes what the coordinator has seen. KEYS: fence, key. ARGV: fencing token, JSON object, seconds kept.
        SURVEY = include_str!("../lua/cluster/survey.lua");
    }
}
