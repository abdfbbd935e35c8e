//! One file per command.

pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod example;
pub(crate) mod nodes;
pub(crate) mod queues;
pub(crate) mod serve;
mod session;
mod signals;
mod table;
pub(crate) mod template;
pub(crate) mod ticket_keys;
pub(crate) mod token;
pub(crate) mod verify;
pub(crate) mod worker;
