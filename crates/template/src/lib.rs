//! Templates: what an organiser writes in Typst becomes a compiled template.
//!
//! [`compile()`] lays a [`Bundle`] out once for an event and takes its fields out; `stampede-render`
//! then stamps tickets without Typst. A template that looks at the ticket is [`typeset()`] for each.
//! These functions run people's code: a server calls them through a [`Sandbox`], in a process that can
//! be killed. The designs that ship with Stampede are [`shipped()`].
//!
//! Nothing here reads a file, the network, the clock or the system's fonts, so equal input gives equal
//! bytes on every node. Values typed by people are data, never part of Typst source.

mod bundle;
mod clusters;
mod compile;
mod designs;
mod diagnostics;
mod event;
mod extract;
mod fonts;
mod glyphs;
mod mistakes;
mod prelude;
mod preview;
mod qr;
mod repack;
pub mod sandbox;
mod stamped;
mod test_hooks;
mod typeset;
mod version;
mod world;

pub use bundle::{Bundle, MAIN_FILE};
pub use compile::{Published, compile};
pub use designs::{Design, shipped};
pub use event::EventData;
pub use glyphs::missing_glyphs;
pub use mistakes::mistakes;
pub use preview::png as preview_png;
pub use sandbox::{Sandbox, sandbox_main};
pub use stamped::{merge_blob, merge_typeset, stamp_blob};
pub use stampede_model::{Diagnostic, Severity};
pub use typeset::{typeset, typeset_compiled};
pub use version::version;
