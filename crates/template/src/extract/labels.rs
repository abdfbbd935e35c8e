//! The labels by which the prelude marks the boxes of fields.

use typst::foundations::Label;
use typst::utils::PicoStr;

/// Adding a kind of field? Also touch `prelude/fields.typ`.
pub(super) struct Labels {
    pub(super) text: Label,
    pub(super) qr: Label,
    pub(super) image: Label,
    pub(super) choice: Label,
    pub(super) only: Label,
}

impl Labels {
    pub(super) fn new() -> Self {
        let label = |name| Label::new(PicoStr::intern(name)).expect("a label is not empty");
        Self {
            text: label("stampede-text"),
            qr: label("stampede-qr"),
            image: label("stampede-image"),
            choice: label("stampede-choice"),
            only: label("stampede-only"),
        }
    }
}
