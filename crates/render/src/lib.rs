//! Stamping: a compiled template and the data of one ticket become the bytes of a PDF.
//!
//! Pure functions: nothing here reads the clock, the environment, a file or the network, so equal
//! input gives equal bytes on every machine, in every process, on every day.

pub mod compiled;
pub mod fonts;
