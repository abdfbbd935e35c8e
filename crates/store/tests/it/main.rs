//! One conformance suite, run on SQLite and on PostgreSQL.
//!
//! A test is an async function that takes a [`Database`](database::Database); naming it in
//! `on_every_backend!` at the top of its file makes one test per backend of it, for example
//! `orders::sqlite::an_order_is_all_or_nothing`. One that is not named there is dead code, which
//! the check refuses.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

/// Makes a test per backend of each function named.
macro_rules! on_every_backend {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::database::Database::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::database::Database::postgres().await).await;
            })+
        }
    };
}

mod completion;
mod connect;
mod counters;
mod database;
mod events;
mod keys;
mod orders;
mod processes;
mod proxy;
mod samples;
mod silence;
mod templates;
mod ticket_keys;
mod ticket_secret;
mod tickets;
