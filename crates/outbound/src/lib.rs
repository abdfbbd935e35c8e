//! HTTP to addresses that others choose: guarded, limited, signed.
//!
//! ```text
//!   name ──▶ resolve once ──▶ addresses that may be reached ──▶ connect to one ──▶ TLS by the name ──▶ request ──▶ answer
//!            └──────────────── NotSent: not a byte of the request left ─────────────────────┘ └── Unanswered ──┘
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `client.rs` | one request within limits, and its answer |
//! | `before_write.rs` | the caller's last word before a request leaves |
//! | `pool.rs` | connections that wait for the next request to the same origin |
//! | `connection.rs` | one connection, and whether a byte of the request left |
//! | `dial.rs` | a connection to an address that may be reached, for other protocols, too |
//! | `answer.rs` | reading an answer up to a limit |
//! | `error.rs` | why there is no answer: not sent, or unanswered |
//! | `tls.rs` | which authorities are trusted |
//! | `guard.rs`, `address.rs` | which addresses and which URLs may be reached |
//! | `signature.rs` | signatures after Standard Webhooks: made and verified |
//!
//! The address that was checked is the one that is connected to. A redirect is an answer like any other: it is not followed.
//! Nothing of the environment, such as a proxy, has a say. No error names a URL: a URL may hold secrets.

pub mod address;
mod answer;
mod before_write;
mod client;
mod connection;
mod dial;
mod error;
mod guard;
mod pool;
pub mod signature;
mod tls;

pub use self::answer::{Answer, retry_after};
pub use self::before_write::{Allowed, AtOnce, BeforeWrite};
pub use self::client::{Client, Limits, Request};
pub use self::dial::Dialer;
pub use self::error::{Error, Stage};
pub use self::guard::AllowedAddresses;
