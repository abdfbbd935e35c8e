//! Hostile and broken clients: the server stays up, gives a reason, and serves others.

mod bytes;
mod fuzz;
mod many_clients;
mod scripts;
mod slow_readers;
