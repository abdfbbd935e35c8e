//! Tests of whole stickers.
//!
//! - `STAMPEDE_STICKER_TEXTS=1000` plays the whole corpus; without it, a slice.
//! - `STAMPEDE_STICKER_FILES=folder` keeps every file that was drawn, for the programs in `interop/stickers`.
//! - `cargo nextest run --release -p stampede-sticker --run-ignored only --no-capture` measures the time of a sticker.

// A test that cannot go on says so by panicking.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod bad_input;
mod corpus;
mod every_text;
mod speed;
mod studio;
mod tgs;
