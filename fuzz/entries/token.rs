//! Any text is refused as a token, or is the one spelling of it.

use stampede_model::Token;

/// The entry: `data` as the text of a token.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(token) = text.parse::<Token>() {
        assert_eq!(token.to_string(), text, "a second spelling");
    }
}
