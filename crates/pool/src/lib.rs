//! A bounded pool of threads for work that takes processor time, and what goes with it.
//!
//! ```text
//!  submit ──▶ room? ──no──▶ Refused::Full { queued, retry_after }
//!               │ yes
//!               ▼
//!     Vip ────────┐
//!     Normal ─────┼──▶ thread 1 … n, each with a state of its own, made by `init`
//!     Batch ──────┘         │
//!     (2 s waited:          └──▶ the answer, through the Ticket
//!      one step up)
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `pool.rs` | [`Pool`]: start, submit, statistics, shutdown |
//! | `shared.rs` | the state that callers and threads share; the rules of admission |
//! | `threads.rs` | the loop of a thread: warm-up, next task, panic |
//! | `queue.rs` | which waiting task is next: pure |
//! | `task.rs`, `ticket.rs` | a task with its answer; the two ends of a submission |
//! | `timing.rs`, `stats.rs`, `error.rs` | how long tasks wait and run, counts, why there is no answer |
//! | `results.rs` | [`Results`]: finished answers, kept by bytes; one computation for many callers |
//! | `popular.rs` | [`Popular`]: the keys of the last 24 hours that were asked for most, in bounded memory |
//!
//! A task is a closure on plain threads. It needs no Tokio; only tickets and results are awaited.
//!
//! A panic is contained: the task fails, its thread makes a new state. A stack overflow or an abort ends the process, as
//! everywhere. Code that people write runs in child processes instead (`template/src/sandbox.rs`). That sandbox shares no code with
//! this pool: it kills processes that exceed their limits, and a thread cannot be killed.

mod error;
mod pool;
mod popular;
mod queue;
mod results;
mod shared;
mod stats;
mod task;
mod threads;
mod ticket;
mod timing;

pub use error::{NoAnswer, Refused};
pub use pool::{Config, Left, Pool};
pub use popular::Popular;
pub use queue::Priority;
pub use results::{Found, Results};
pub use stats::Stats;
pub use ticket::{Batch, Ticket};
pub use timing::{BOUNDS, Timing};
