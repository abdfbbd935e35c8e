//! A stand-in for the bibliography library: it reads no library, so there is never anything to cite.
//!
//! Typst calls it for `bibliography(…)` and `cite(…)`.

pub mod archive;
pub mod citationberg;
pub mod io;

use std::convert::Infallible;
use std::marker::PhantomData;

/// Why there are none.
pub(crate) const REASON: &str = "ticket templates have no bibliographies";

/// The entries of a library: none.
pub struct Library(Infallible);

impl Library {
    /// Tells that there is no entry.
    pub fn is_empty(&self) -> bool {
        match self.0 {}
    }
}

impl IntoIterator for Library {
    type Item = Entry;
    type IntoIter = std::iter::Empty<Entry>;

    fn into_iter(self) -> Self::IntoIter {
        match self.0 {}
    }
}

/// An entry of a library: there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry(Infallible);

impl Entry {
    /// Its key.
    pub fn key(&self) -> &str {
        match self.0 {}
    }

    /// Its title.
    pub fn title(&self) -> Option<&Title> {
        match self.0 {}
    }
}

/// The title of an entry.
pub struct Title {
    /// Its words.
    pub value: Words,
}

/// Words with their form.
pub struct Words(Infallible);

impl Words {
    /// Without their form.
    pub fn to_str(&self) -> &str {
        match self.0 {}
    }
}

/// A citation of an entry.
pub struct CitationItem<'a, T>(PhantomData<&'a T>);

impl<'a, T> CitationItem<'a, T> {
    /// A citation.
    pub fn new(
        _: &'a T,
        _: Option<SpecificLocator>,
        _: Option<citationberg::LocaleCode>,
        _: bool,
        _: Option<CitePurpose>,
    ) -> Self {
        Self(PhantomData)
    }
}

/// Where in a work.
pub struct SpecificLocator(pub citationberg::taxonomy::Locator, pub LocatorPayload);

/// What the place in a work is.
pub enum LocatorPayload {
    /// Something that only Typst understands.
    Transparent(TransparentLocator),
}

/// Something that only Typst understands.
pub struct TransparentLocator;

impl TransparentLocator {
    /// Forgets it.
    pub fn new<T>(_: T) -> Self {
        Self
    }
}

/// The form of a citation.
pub enum CitePurpose {
    /// Part of a sentence.
    Prose,
    /// The whole entry.
    Full,
    /// The author.
    Author,
    /// The year.
    Year,
}

/// Several citations in one place.
pub struct CitationRequest<'a, T>(PhantomData<&'a T>);

impl<'a, T> CitationRequest<'a, T> {
    /// A request.
    pub fn new(
        _: Vec<CitationItem<'a, T>>,
        _: &'a citationberg::IndependentStyle,
        _: Option<citationberg::LocaleCode>,
        _: &'a [citationberg::Locale],
        _: Option<usize>,
    ) -> Self {
        Self(PhantomData)
    }
}

/// What a bibliography shall look like.
pub struct BibliographyRequest<'a> {
    /// Its style.
    pub style: &'a citationberg::IndependentStyle,
    /// Its language.
    pub locale: Option<citationberg::LocaleCode>,
    /// Words in all languages.
    pub locale_files: &'a [citationberg::Locale],
}

/// Collects citations.
#[derive(Default)]
pub struct BibliographyDriver<'a, T>(PhantomData<&'a T>);

impl<'a, T> BibliographyDriver<'a, T> {
    /// A driver.
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// Where numbers begin.
    pub fn with_citation_number_offset(self, _: usize) -> Self {
        self
    }

    /// Forgets a citation.
    pub fn citation(&mut self, _: CitationRequest<'a, T>) {}

    /// Nothing was collected.
    pub fn finish(self, _: BibliographyRequest<'_>) -> Rendered {
        Rendered { bibliography: None, citations: Vec::new() }
    }
}

/// A rendered bibliography with its citations.
pub struct Rendered {
    /// The bibliography.
    pub bibliography: Option<RenderedBibliography>,
    /// The citations.
    pub citations: Vec<RenderedCitation>,
}

/// A rendered bibliography.
pub struct RenderedBibliography {
    /// Its items.
    pub items: Vec<BibliographyItem>,
    /// Whether all lines but the first are indented.
    pub hanging_indent: bool,
}

/// An item of a bibliography.
pub struct BibliographyItem {
    /// The key of its entry.
    pub key: String,
    /// What stands before it.
    pub first_field: Option<ElemChild>,
    /// What it says.
    pub content: ElemChildren,
}

/// A rendered citation.
pub struct RenderedCitation {
    /// What it says.
    pub citation: ElemChildren,
}

/// Parts of a text.
pub struct ElemChildren(pub Vec<ElemChild>);

impl ElemChildren {
    /// Finds no part.
    pub fn find_meta(&self, _: &ElemMeta) -> Option<&Elem> {
        None
    }
}

/// A part of a text.
pub enum ElemChild {
    /// Words.
    Text(Formatted),
    /// Parts.
    Elem(Elem),
    /// A formula.
    Markup(String),
    /// A link.
    Link {
        /// Its words.
        text: Formatted,
        /// Its address.
        url: String,
    },
    /// Something that only Typst understands.
    Transparent {
        /// The citation it belongs to.
        cite_idx: usize,
        /// Its form.
        format: Formatting,
    },
}

/// Parts that belong together.
pub struct Elem {
    /// The parts.
    pub children: ElemChildren,
    /// How they are placed.
    pub display: Option<citationberg::Display>,
    /// What they are.
    pub meta: Option<ElemMeta>,
}

/// What a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ElemMeta {
    /// The number of a citation.
    CitationNumber,
    /// An entry.
    Entry(usize),
}

/// Words with their form.
pub struct Formatted {
    /// The words.
    pub text: String,
    /// Their form.
    pub formatting: Formatting,
}

/// The form of words.
pub struct Formatting {
    /// Slant.
    pub font_style: citationberg::FontStyle,
    /// Small capitals.
    pub font_variant: citationberg::FontVariant,
    /// Weight.
    pub font_weight: citationberg::FontWeight,
    /// Line under them.
    pub text_decoration: citationberg::TextDecoration,
    /// Height.
    pub vertical_align: citationberg::VerticalAlign,
}
