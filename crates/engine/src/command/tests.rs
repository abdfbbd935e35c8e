//! Tests of commands on a keyspace alone. `tests/it` compares them with a real Redis.

mod blocking;
mod panics;
mod speed;
