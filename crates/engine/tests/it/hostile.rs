//! Hostile and broken clients: the server stays up, gives a reason, and serves others.

mod bytes;
mod crowds;
mod fuzz;
mod readers;
mod scripts;
