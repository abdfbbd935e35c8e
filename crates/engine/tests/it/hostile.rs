//! Clients that mean harm, or behave as if they did: the server stays up, says why, and serves others.

mod bytes;
mod crowds;
mod fuzz;
mod readers;
mod scripts;
