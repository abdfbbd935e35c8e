//! Tests of the SQL backend alone.

mod connect;
mod durability;
mod old_records;
mod processes;
mod proxy;
mod schema;
mod silence;
