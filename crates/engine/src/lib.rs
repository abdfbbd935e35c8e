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
/// The result of opening a journal; see [`Server::opened`].
pub use journal::Opened;
/// The result of a repair: damage found, contents kept, files set aside.
pub use journal::Repaired;
/// An incomplete tail that a crash left in the log; opening the journal cuts it.
pub use journal::Torn;
/// Reads a journal without changing it and reports damage; needs the directory's lock.
pub use journal::check as check_journal;
/// Repairs a damaged journal: keeps everything before the damage and sets the rest aside.
pub use journal::repair as repair_journal;
/// Addresses, password, journal and limits of a server.
pub use server::Config;
/// Why the server cannot listen on an address.
pub use server::ListenError;
/// A running server; dropping it stops it.
pub use server::Server;
/// Why the server did not start.
pub use server::StartError;
