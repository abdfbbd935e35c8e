//! Tests of the SQL backend alone.

mod connect;
mod durability;
mod full_disk;
mod old_records;
mod processes;
mod proxy;
mod schema;
mod silence;
