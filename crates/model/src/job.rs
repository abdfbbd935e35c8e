//! Jobs as data: what is put on a queue.

mod spec;

pub use self::spec::{Backoff, Deduplication, JobSpec, Keep, Which};
