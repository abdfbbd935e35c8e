//! Test harness: real servers on free ports and in temporary folders, and the one way to wait.
//!
//! Nothing here ships. A server that a test needs and the machine lacks fails the test with the
//! line that installs it; nothing is skipped silently.
//!
//! Adding a server? Start it through `Guarded`, so that it dies with the test.

mod app;
mod client;
mod eventually;
mod faults;
pub mod fonts;
mod guarded;
mod mail;
mod nginx;
mod pdf;
mod postgres;
mod process;
mod provider;
mod proxy;
mod python;
mod receiver;
mod redis;
mod sentinel;
mod small_disk;
mod sticker_telegram;

pub use app::{ADMIN_KEY, App, kill, signal};
pub use client::{Answer, Client, send};
pub use eventually::{Outcome, eventually};
pub use faults::{Faults, Wrong};
pub use guarded::free_port;
pub use mail::{Mail, MailPart, MailServer};
pub use nginx::Nginx;
pub use pdf::{pdf_codes, pdf_is_sound, pdf_pages, pdf_text};
pub use postgres::Postgres;
pub use process::Process;
pub use provider::{
    Asked, Provider, Reply, TELEGRAM, hub_signature, twilio_signature, whatsapp_receipts,
};
pub use proxy::Proxy;
pub use python::python;
pub use receiver::{Behaviour, Received, Receiver};
pub use redis::Redis;
pub use rustix::process::Signal;
pub use sentinel::Sentinel;
pub use small_disk::SmallDisk;
pub use sticker_telegram::{BOT_NAME, MadeSet, StickerTelegram};
pub use tempfile::TempDir;

/// Makes a temporary folder that is removed when the value is dropped.
pub fn temp_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("stampede-")
        .tempdir()
        .unwrap_or_else(|error| panic!("cannot create a temporary folder: {error}"))
}
