//! Jobs are removed, with BullMQ's `removeJob`, and what comes after them in a flow does not run.
//!
//! For BullMQ a child that is removed is as good as done: its parent begins, though nobody has done what had to
//! be done before it. Here the parent fails instead, unless the child was allowed to fail; whoever wants it to run
//! all the same replays it. And BullMQ's own scripts for many jobs look at so many of one end of a list and stop when
//! these stay, as the next jobs of schedules do.

use redis::Value;

use super::many::for_many;
use super::{REMOVE_JOB_TEXT, REMOVE_UNPROCESSED_CHILDREN, Script};
use crate::connection::Link;
use crate::keys::Keys;
use crate::{Error, WhenActive};

/// What functions of `removeJob` become. Where a job stands in its list is known when many are removed.
const WRAPPED: [(&str, &str); 2] =
    [("removeParentDependencyKey", "failingParent"), ("removeJobFromAnyState", "knownState")];

const WRAPPERS: &str = include_str!("orphans.lua");

static REMOVE: Script = Script::new(|| {
    // A Redis without memory takes what follows a command that needs none.
    script("rcall('SREM', ARGV[3] .. 'stalled', '')\nreturn one(KEYS, ARGV)")
});

static REMOVE_SLICE: Script = Script::new(|| script(include_str!("remove.lua")));

fn script(calls: &str) -> redis::Script {
    redis::Script::new(&format!("{WRAPPERS}{}", for_many(REMOVE_JOB_TEXT, &WRAPPED, calls)))
}

/// What became of a job that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It is gone, if it was there.
    Gone,
    /// Somebody works on it, or on a child of it.
    Locked,
    /// It is the next job of a schedule.
    OfSchedule,
}

/// Removes a job, its children and what is kept about it, unless somebody works on it.
pub(crate) async fn remove(redis: &mut Link, keys: &Keys, job_id: &str) -> Result<Removal, Error> {
    let mut call = REMOVE.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.part("repeat"));
    match call.arg(job_id).arg("1").arg(&keys.prefix).invoke_async(redis).await? {
        Value::Int(1) => Ok(Removal::Gone),
        Value::Int(0) => Ok(Removal::Locked),
        Value::Int(-8) => Ok(Removal::OfSchedule),
        answer => Err(Error::Protocol { script: "removeJob", answer: format!("{answer:?}") }),
    }
}

/// Which jobs of a list or set to remove.
pub(crate) struct Slice<'a> {
    /// The list or set: `wait`, `failed`, …
    pub(crate) part: &'a str,
    /// How many to pass over.
    pub(crate) skip: usize,
    /// How many to look at.
    pub(crate) count: usize,
    /// How many to remove at most.
    pub(crate) most: usize,
    /// Only those that nothing has happened to since then.
    pub(crate) since_ms: u64,
    /// Whether those go too that somebody works on.
    pub(crate) when_active: WhenActive,
}

/// What became of a slice.
pub(crate) struct SliceRemoved {
    /// How many were looked at.
    pub(crate) seen: usize,
    /// Which are gone.
    pub(crate) gone: Vec<String>,
    /// How many others have come to the same end of the list meanwhile: parents that had waited for those.
    pub(crate) come: usize,
}

/// Removes jobs without their children.
pub(crate) async fn remove_slice(
    redis: &mut Link,
    keys: &Keys,
    slice: &Slice<'_>,
) -> Result<SliceRemoved, Error> {
    let mut call = REMOVE_SLICE.prepare_invoke();
    for key in keys.parts([slice.part, "repeat", "events"]) {
        call.key(key);
    }
    call.arg(&keys.prefix).arg(slice.part).arg(slice.skip).arg(slice.count).arg(slice.most);
    call.arg(slice.since_ms).arg(if slice.when_active == WhenActive::Destroy { "1" } else { "" });
    let (seen, gone, come): (usize, Vec<Vec<u8>>, usize) = call.invoke_async(redis).await?;
    let gone = gone.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect();
    Ok(SliceRemoved { seen, gone, come })
}

/// Removes the children of a job that have not begun.
pub(crate) async fn remove_unprocessed_children(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
) -> Result<(), Error> {
    let mut call = REMOVE_UNPROCESSED_CHILDREN.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.part("meta"));
    Ok(call.arg(&keys.prefix).arg(job_id).invoke_async(redis).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_script_has_all_that_is_wrapped() {
        let text = for_many(REMOVE_JOB_TEXT, &WRAPPED, "");
        for (name, wrapper) in WRAPPED {
            assert!(text.contains(&format!("{name} = {wrapper}({name})\n")), "{name}");
        }
    }
}
