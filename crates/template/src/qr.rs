//! The QR code of a ticket: level M, quiet zone included, for templates that draw it themselves.

use std::fmt::Write;

use qrcodegen::{QrCode, QrCodeEcc};

use crate::Error;

/// Modules of white on every side that scanners need (ISO/IEC 18004).
const QUIET_ZONE: i32 = 4;

/// A code as a path of rectangles; the quiet zone belongs to it, so that no template can forget it.
pub(crate) struct Symbol {
    side: i32,
    path: String,
}

impl Symbol {
    /// Encodes the text.
    pub(crate) fn of(code: &str) -> Result<Self, Error> {
        let qr = QrCode::encode_text(code, QrCodeEcc::Medium)
            .map_err(|_| Error::CodeTooLong { length: code.len() })?;
        Ok(Self { side: qr.size() + 2 * QUIET_ZONE, path: path(&qr) })
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

/// One rectangle for every horizontal run of dark modules.
fn path(qr: &QrCode) -> String {
    let mut path = String::new();
    for y in 0..qr.size() {
        let mut x = 0;
        while x < qr.size() {
            let run = (x..qr.size()).take_while(|x| qr.get_module(*x, y)).count() as i32;
            if run > 0 {
                let (left, top) = (x + QUIET_ZONE, y + QUIET_ZONE);
                // Writing to a String cannot fail.
                let _ = write!(path, "M{left} {top}h{run}v1h-{run}z");
            }
            x += run + 1;
        }
    }
    path
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
