//! BullMQ's Lua scripts as functions: each puts KEYS and ARGV in the order its header documents.
//!
//! The texts come from the pinned `bullmq-official` crate (see `build.rs`). `redis::Script` runs
//! them by hash and loads them when the server does not know them (yet, or any more).
//!
//! - `add.rs`: jobs come into being
//! - `fetch.rs`: a job becomes ours
//! - `finish.rs`: a run ends
//! - `holding.rs`: locks, and jobs whose holder is gone
//! - `record.rs`: what is written about a job while it runs
//! - `many.rs`: one call for many jobs
//! - `mend.rs`: jobs that the others would stumble over
//! - `remove.rs`: jobs are removed, one or many
//! - `replay.rs`: failed jobs run again

mod add;
mod fetch;
mod finish;
mod holding;
#[cfg(test)]
mod like_single;
mod many;
mod mend;
mod record;
mod remove;
mod replay;

use std::sync::LazyLock;

use serde::Serialize;

pub(crate) use self::add::{NewJob, add};
pub(crate) use self::fetch::{Fetched, move_to_active};
pub(crate) use self::finish::{
    Attempt, End, Finished, Next, Run, await_children, fail_for_good, forget, move_to_completed,
    move_to_delayed, move_to_failed, put_aside, retry_job,
};
pub(crate) use self::holding::{
    OurRun, TakenBack, count_crash, extend_locks, move_job_from_active_to_wait,
    move_stalled_jobs_to_wait, take_back,
};
pub(crate) use self::mend::{mend, mend_stalled};
pub(crate) use self::record::{add_log, update_job_scheduler, update_progress};
pub(crate) use self::remove::{
    Removal, Slice, SliceRemoved, remove, remove_slice, remove_unprocessed_children,
};
pub(crate) use self::replay::{Again, forget_letter, replay, replay_anew};

type Script = LazyLock<redis::Script>;

include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// What a worker tells the scripts about itself.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// Who holds the locks.
    pub(crate) token: String,
    /// Shown as `processedBy`.
    pub(crate) name: String,
    /// How long a lock lives without renewal.
    pub(crate) lock_ms: u64,
}

#[derive(Serialize)]
struct FetchOptions<'a> {
    token: &'a str,
    #[serde(rename = "lockDuration")]
    lock_ms: u64,
    name: &'a str,
}

impl Claim {
    /// What a script that fetches wants to know of us, packed.
    fn packed(&self) -> Vec<u8> {
        packed(&FetchOptions { token: &self.token, lock_ms: self.lock_ms, name: &self.name })
    }
}

/// MessagePack with field names, as `cmsgpack.unpack` in the scripts wants it.
fn packed<T: Serialize>(value: &T) -> Vec<u8> {
    // Strings, numbers and booleans in memory always serialise.
    rmp_serde::to_vec_named(value).unwrap_or_default()
}

/// `[name, value, name, value, …]` for HMSET inside the scripts; empty when there is nothing to set.
fn packed_fields(fields: &[(&'static str, String)]) -> Vec<u8> {
    if fields.is_empty() {
        return Vec::new();
    }
    packed(&fields.iter().flat_map(|(name, value)| [*name, value.as_str()]).collect::<Vec<_>>())
}
