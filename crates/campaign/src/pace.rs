//! Pace: the arithmetic of how fast a campaign sends. Everything here is pure: the caller gives the time and the random numbers.
//!
//! | file | holds |
//! |---|---|
//! | `quiet.rs` | when quiet hours end, and which time zone they are in |
//! | `warm_up.rs` | the most messages of a day that grows from day to day |
//! | `estimate.rs` | when a number of messages is done (`etaAt`) |
//! | `measured.rs` | how fast a campaign really is |
//! | `in_flight.rs` | how many messages an account has on their way at once |
//! | `feed.rs` | how many jobs a campaign has in the queue, and how long its feeder sleeps |
//! | `auto_pause.rs` | whether a campaign pauses by itself |
//! | `retry.rs` | how long a recipient waits for its next attempt |
//! | `spans.rs` | how long the spans of a report are |

mod auto_pause;
mod estimate;
mod feed;
mod in_flight;
mod measured;
mod quiet;
mod retry;
mod spans;
mod warm_up;

pub use self::auto_pause::{LOOKED_AT, PauseReason, decide};
pub use self::estimate::{Estimate, HORIZON_DAYS};
pub use self::feed::{feeder_sleep, portion};
pub use self::in_flight::{in_flight, slowest};
pub use self::measured::{MEASURED_OVER, MOST_MEASURED, Measured, measured_rate};
pub use self::quiet::{Quiet, Zones, never_opens, opens_at};
pub use self::retry::back_off;
pub use self::spans::span_of_report;
pub use self::warm_up::{cap_of_day, day_began, day_name, day_of, next_day};
