//! The feed: what has happened, from the outbox of the store to live readers on every node.
//!
//! ```text
//!   change + row, one commit        one node holds the lease              every node with the API
//!   store ──▶ outbox ─────────────▶ Relay ──▶ stream in Redis ──────────▶ Hub ──▶ Reader, Reader, …
//!               │ Nudger: "look" ────▲  ▲                                  (one connection)
//!               │                       └── bridge: messages on channels that nothing stores
//!               └── settled by the relay after the stream has them
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `relay.rs` | moves rows of the outbox to the stream, on one node at a time |
//! | `bridge.rs` | messages on Redis channels as events of the feed: pure |
//! | `nudge.rs` | says that the outbox has rows |
//! | `keep.rs` | how many entries the stream keeps: pure |
//! | `hub.rs`, `reader.rs` | one reader of the stream a node, and its subscribers |
//! | `restart.rs` | a restart of Redis as an entry of the stream: pure |
//! | `recent.rs` | drops events that come twice |
//! | `seen.rs` | an event as readers filter it, and who may see it: pure |
//!
//! Guarantees. A change that is committed is in the stream at least once, and its repetition has the same id. A reader
//! that resumes from a position on any node misses nothing, or is told that events are missing: every page and every read of
//! the hub looks whether the entry before it is still kept. Redis holds the stream, so a Redis that loses its last second loses
//! events of that second. A restart that a node notices is an entry of the stream; readers that meet it read the state anew.
//!
//! This crate must never name HTTP.

mod bridge;
mod hub;
mod keep;
mod nudge;
mod reader;
mod recent;
mod relay;
mod restart;
mod seen;
mod test_hooks;

pub use bridge::publish;
pub use hub::Hub;
pub use nudge::Nudger;
pub use reader::{Heard, Reader};
pub use relay::{Relay, RelayConfig};
pub use seen::{Filter, Seen, may_see};
pub use stampede_broker::Position;
