//! Styles of citations: no style can be read.

use crate::REASON;

/// A style, or a reference to another.
pub enum Style {
    /// A style.
    Independent(IndependentStyle),
    /// A reference.
    Dependent,
}

/// A style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndependentStyle {
    /// Its settings.
    pub settings: Settings,
}

impl IndependentStyle {
    /// Refuses a style.
    pub fn from_xml(_: &str) -> Result<Self, &'static str> {
        Err(REASON)
    }
}

/// Settings of a style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where citations go.
    pub class: StyleClass,
}

/// Where citations go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StyleClass {
    /// Into the text.
    #[default]
    InText,
    /// Into notes.
    Note,
}

/// Words in one language.
pub struct Locale;

/// The code of a language.
#[derive(Debug, Clone)]
pub struct LocaleCode(pub String);

/// How parts are placed.
#[derive(Clone, Copy)]
pub enum Display {
    /// Apart.
    Block,
    /// Indented.
    Indent,
    /// In the margin.
    LeftMargin,
    /// In the line.
    RightInline,
}

/// Slant.
#[derive(Clone, Copy)]
pub enum FontStyle {
    /// Upright.
    Normal,
    /// Slanted.
    Italic,
}

/// Small capitals.
#[derive(Clone, Copy)]
pub enum FontVariant {
    /// Without.
    Normal,
    /// With.
    SmallCaps,
}

/// Weight.
#[derive(Clone, Copy)]
pub enum FontWeight {
    /// As usual.
    Normal,
    /// More.
    Bold,
    /// Less.
    Light,
}

/// A line under words.
#[derive(Clone, Copy)]
pub enum TextDecoration {
    /// Without.
    None,
    /// With.
    Underline,
}

/// Height.
#[derive(Clone, Copy)]
pub enum VerticalAlign {
    /// As usual.
    None,
    /// On the line.
    Baseline,
    /// Above.
    Sup,
    /// Below.
    Sub,
}

/// Words of the trade.
pub mod taxonomy {
    /// A place in a work.
    pub enum Locator {
        /// One's own.
        Custom,
    }
}
