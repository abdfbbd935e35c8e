//! What the stamper writes, looked at with the tools of readers and scanners.

mod sample;
mod stamping;
