//! What the stamper writes, looked at with the tools of readers and scanners.

// A test that cannot go on says so by panicking.
#![allow(clippy::unwrap_used)]

mod blobs;
mod fitting;
mod font_bombs;
mod fuzzing;
mod hostile;
mod look;
mod merging;
mod own_fonts;
mod preflighting;
mod sample;
mod stamping;
