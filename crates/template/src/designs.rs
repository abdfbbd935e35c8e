//! The designs that ship with Stampede.

use std::sync::LazyLock;

use crate::Bundle;

/// A design an organiser can use as it is, or begin with.
#[derive(Debug, Clone)]
pub struct Design {
    /// Names it.
    pub name: &'static str,
    /// Its description for people.
    pub title: &'static str,
    /// Its files.
    pub bundle: Bundle,
}

/// All of them; the first is the default.
pub fn shipped() -> &'static [Design] {
    static DESIGNS: LazyLock<Vec<Design>> = LazyLock::new(|| {
        [
            ("a4", "A4 page with a card and a tear-off code", include_str!("designs/a4.typ")),
            ("stub", "200 × 80 mm ticket with a tear-off stub", include_str!("designs/stub.typ")),
            ("badge", "96 × 134 mm badge with a large name", include_str!("designs/badge.typ")),
        ]
        .into_iter()
        .filter_map(|(name, title, source)| {
            Some(Design { name, title, bundle: Bundle::of_source(source).ok()? })
        })
        .collect()
    });
    &DESIGNS
}
