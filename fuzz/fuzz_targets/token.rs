//! `cargo +nightly fuzz run token`
#![no_main]

#[path = "../entries/token.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::run(data));
