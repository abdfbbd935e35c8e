//! Tests of the feed with a real Redis and a real database.
#![allow(clippy::unwrap_used)]

mod following;
mod relaying;
mod stage;
