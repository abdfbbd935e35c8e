//! An embedded server that speaks the Redis protocol, runs Lua scripts and keeps a journal on disk.
//!
//! Clients connect to it as they would to Redis. The engine knows nothing of jobs or tickets.
//!
//! ```
//! use std::io::{BufRead, BufReader, Write};
//! use std::net::TcpStream;
//!
//! use stampede_engine::{Config, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Port 0 picks a free port. Without `dir` there is no journal: data lives until `stop`.
//! let server = Server::start(Config { tcp: vec!["127.0.0.1:0".parse()?], ..Config::default() })?;
//!
//! let address = server.tcp_addr().ok_or("no TCP address")?;
//! let mut client = BufReader::new(TcpStream::connect(address)?);
//! client.get_mut().write_all(b"PING\r\n")?;
//! let mut reply = String::new();
//! client.read_line(&mut reply)?;
//! assert_eq!(reply, "+PONG\r\n");
//!
//! server.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! # How the crate is divided
//!
//! ```text
//!   server    sockets, sessions, the executor's lock, transactions, pub/sub, INFO, CONFIG
//!     ├─ command   the table of keyspace commands   ├─ lua   scripts (with script_host)
//!     │    └─ db   keys, expiry, effects, watches ──┴─ value   one file per type (blob, dict, chunks)
//!     ├─ journal   records, snapshot, recovery, repair      └─ dump   a key as commands, for snapshots
//!     ├─ maintenance   check and repair of a journal, with names of keys
//!     └─ reply, error, number, glob   RESP and Redis's rules for texts and numbers
//! ```

mod blob;
mod chunks;
mod command;
mod db;
mod dict;
mod dump;
mod error;
mod glob;
mod journal;
mod lua;
mod maintenance;
mod number;
mod reply;
mod script_host;
mod server;
#[doc(hidden)]
pub mod testing;
mod value;

/// The durability policy and the limits of a journal.
pub use journal::Config as JournalConfig;
/// The contents of a journal: figures, a torn tail, the first damage.
pub use journal::Contents;
/// The place and kind of damage in a journal.
pub use journal::Damage;
/// Why a journal could not be opened, written, checked or repaired.
pub use journal::Error as JournalError;
/// When records are synced to disk: always, every second or never.
pub use journal::Fsync;
/// A damaged range of a snapshot file.
pub use journal::Gap;
/// The missing part of a salvaged snapshot.
pub use journal::Missing;
/// The result of opening a journal; see [`Server::opened`].
pub use journal::Opened;
/// How a repaired journal relates to the journal before the damage.
pub use journal::Outcome;
/// Whether a repair may leave a state that never was.
pub use journal::RepairRule;
/// The result of a repair, planned or carried out: damage, contents kept, records lost, files set aside.
pub use journal::Repaired;
/// An incomplete tail that a crash left in the log; opening the journal cuts it.
pub use journal::Torn;
/// Why a repair was refused.
pub use journal::Unrepairable;
/// Reads a journal without changing it and reports damage; needs the directory's lock.
pub use journal::check as check_journal;
/// Creates a directory, and all missing ones above it, so that they survive a power cut.
pub use journal::create_dir_durably;
/// Tells what a repair would do, and repairs.
pub use maintenance::{plan_repair, repair_journal};
/// Addresses, password, journal and limits of a server.
pub use server::Config;
/// Why the server cannot listen on an address.
pub use server::ListenError;
/// A running server; dropping it stops it.
pub use server::Server;
/// Why the server did not start.
pub use server::StartError;
