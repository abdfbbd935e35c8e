//! Calls of Lua scripts: each function puts KEYS and ARGV in the order that `crates/scripts` documents.
//!
//! The texts are finished when `crates/scripts` is built. `redis::Script` runs them by hash and loads them when
//! the server does not know them.
//!
//! | file | holds |
//! |---|---|
//! | `add.rs` | adding jobs |
//! | `fetch.rs` | taking the next job |
//! | `finish.rs` | ending a run: completed, failed, retried, delayed |
//! | `letters.rs` | the dead letter of a job that fails permanently, in one transaction with its failure |
//! | `holding.rs` | locks, and jobs whose worker is gone |
//! | `record.rs` | log and progress of a job while it runs |
//! | `many.rs` | answers of a call for many jobs |
//! | `repair.rs` | repairing malformed jobs |
//! | `remove.rs` | removing jobs, one or many |
//! | `replay.rs` | running failed jobs again |

mod add;
mod fetch;
mod finish;
mod holding;
mod letters;
#[cfg(test)]
mod like_single;
mod many;
mod record;
mod remove;
mod repair;
mod replay;

use serde::Serialize;

pub(crate) use self::add::{NewJob, add};
pub(crate) use self::fetch::{Fetched, move_to_active};
pub(crate) use self::finish::{
    Attempt, FinishReply, FinishRequest, Next, Run, await_children, forget_job, move_to_completed,
    move_to_delayed, move_to_failed, put_aside, retry_job,
};
pub(crate) use self::holding::{
    OurRun, TakenBack, count_crash, extend_locks, move_job_from_active_to_wait,
    move_stalled_jobs_to_wait, take_back,
};
pub(crate) use self::letters::{NewLetter, fail_permanently};
pub(crate) use self::record::{add_log, update_job_scheduler, update_progress};
pub use self::remove::WhenActive;
pub(crate) use self::remove::{
    Removal, Slice, SliceRemoved, remove, remove_slice, remove_unprocessed_children,
};
pub(crate) use self::repair::{repair, repair_stalled};
pub(crate) use self::replay::{Again, forget_letter, replay, replay_anew};

/// What the scripts need to know about a worker that takes jobs.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// The lock token.
    pub(crate) token: String,
    /// The name of the worker, shown as `processedBy`.
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
    /// The options of a script that takes a job, packed.
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
