//! An embedded server that speaks the Redis protocol, runs Lua scripts and keeps a journal on disk.
//!
//! It knows nothing of jobs or tickets: clients connect to it as they would to Redis.

pub mod blob;
mod chunks;
pub mod command;
pub mod db;
pub mod dict;
pub mod dump;
pub mod error;
pub mod glob;
pub mod host;
pub mod journal;
pub mod lua;
pub mod number;
pub mod reply;
pub mod server;
pub mod value;
