//! What the bytes of a ticket depend on besides its template and its values.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use stampede_render::fonts;

use crate::prelude;

/// Part of every version. Count up when this crate starts to make other bytes from the same input.
const RENDERER_VERSION: &str = "stampede-2";

/// Changes whenever the same bundle and values could give other bytes: with the renderer, Typst, the
/// fonts and the prelude.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let mut hash = Sha256::new();
        hash.update(RENDERER_VERSION);
        hash.update([0]);
        hash.update(typst::utils::version().raw());
        hash.update([0]);
        for font in fonts::shipped() {
            hash.update(font.sha256);
        }
        hash.update(prelude::source().text());
        hash.update(prelude::WORDS);
        hex::encode(&hash.finalize()[..8])
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_short_and_the_same_each_time() {
        assert_eq!(version(), version());
        assert!(version().len() == 16 && version().bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
