//! The studio with an artist of the test, real files and a real redis-server. Tests wait for signals, never for time.

#![allow(clippy::unwrap_used)]

mod ahead;
mod jobs;
mod one;
mod several;
mod stage;
