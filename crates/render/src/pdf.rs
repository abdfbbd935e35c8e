//! Writing PDF: content, fonts, objects.

pub(crate) mod content;
pub(crate) mod deflate;
pub(crate) mod fonts;
pub(crate) mod objects;
pub(crate) mod shapes;
pub(crate) mod syntax;
pub(crate) mod write;
