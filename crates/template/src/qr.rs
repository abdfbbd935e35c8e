//! The QR code of a ticket for templates that draw it themselves: the stamper's symbol, as a path.

use std::fmt::Write;

use stampede_render::qr::Encoder;

use crate::Diagnostic;

/// Modules of white on every side that scanners need (ISO/IEC 18004).
const QUIET_ZONE: usize = 4;

/// A code as a path of rectangles; the quiet zone belongs to it, so that no template can forget it.
pub(crate) struct Symbol {
    side: usize,
    path: String,
}

impl Symbol {
    /// Encodes the text at level M.
    pub(crate) fn of(code: &str) -> Result<Self, Diagnostic> {
        let symbol = Encoder::new().encode(code).map_err(|_| {
            let length = code.len();
            let message = format!("the ticket's code has {length} bytes, too many for a QR code");
            Diagnostic::error(None, message)
        })?;
        let mut path = String::new();
        symbol.runs(|x, y, length| {
            let (left, top) = (x + QUIET_ZONE, y + QUIET_ZONE);
            // Writing to a String cannot fail.
            let _ = write!(path, "M{left} {top}h{length}v1h-{length}z");
        });
        Ok(Self { side: symbol.size() + 2 * QUIET_ZONE, path })
    }

    /// A black code on white as an image.
    pub(crate) fn svg(&self) -> String {
        let Self { side, path } = self;
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}"><path fill="#fff" d="M0 0h{side}v{side}H0z"/><path shape-rendering="crispEdges" d="{path}"/></svg>"##
        )
    }

    /// Its side in modules and its path, for the prelude.
    pub(crate) fn json(&self) -> String {
        serde_json::json!({ "side": self.side, "path": self.path }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dark_modules_start_behind_the_quiet_zone() {
        let svg = Symbol::of("0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01").unwrap().svg();
        // 36 characters need version 3: 29 modules and 4 of white on either side.
        assert!(svg.contains(r#"viewBox="0 0 37 37""#), "{svg}");
        assert!(svg.contains(r#"d="M4 4h7v1h-7z"#), "{svg}");
    }

    #[test]
    fn a_code_beyond_the_largest_symbol_is_an_error() {
        let error = Symbol::of(&"x".repeat(4_000)).map(|symbol| symbol.side).unwrap_err();
        assert_eq!(error.to_string(), "the ticket's code has 4000 bytes, too many for a QR code");
    }
}
