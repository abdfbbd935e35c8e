//! `cargo +nightly fuzz run blob`
#![no_main]

#[path = "../entries/blob.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::run(data));
