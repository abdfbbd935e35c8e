//! `cargo +nightly fuzz run stamp`
#![no_main]

#[path = "../entries/stamp.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::run(data));
