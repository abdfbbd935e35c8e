//! The styles that ship: one, which Typst names as its default.

use crate::citationberg::{IndependentStyle, Locale, Style};

/// A style that ships.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArchivedStyle {
    /// Typst's default.
    InstituteOfElectricalAndElectronicsEngineers,
}

impl ArchivedStyle {
    /// The style itself.
    pub fn get(self) -> Style {
        Style::Independent(IndependentStyle::default())
    }

    /// All of them.
    pub fn all() -> &'static [Self] {
        &[Self::InstituteOfElectricalAndElectronicsEngineers]
    }

    /// Its names.
    pub fn names(self) -> &'static [&'static str] {
        &["ieee"]
    }

    /// Its name for people.
    pub fn display_name(self) -> &'static str {
        "IEEE"
    }

    /// Finds a style.
    pub fn by_name(name: &str) -> Option<Self> {
        (name == "ieee").then_some(Self::InstituteOfElectricalAndElectronicsEngineers)
    }
}

/// Words in all languages: none.
pub fn locales() -> Vec<Locale> {
    Vec::new()
}
