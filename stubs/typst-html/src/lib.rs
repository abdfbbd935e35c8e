//! A stand-in for Typst's export to HTML: tickets are pages.
//!
//! The module `html` is empty, so no template makes an HTML element; what is asked about one is never asked.

use typst_library::foundations::{Content, Module, NativeRuleMap, Scope, StyleChain, elem};
use typst_library::visualize::Color;

/// The module `html`: empty.
pub fn module() -> Module {
    Module::new("html", Scope::new())
}

/// Registers no rule.
pub fn register(_: &mut NativeRuleMap) {}

/// Leaves content as it is.
pub fn html_span_filled(content: Content, _: Color) -> Content {
    content
}

/// Finds no MathML.
pub fn html_mathml_body<'a>(_: &'a Content, _: StyleChain<'a>) -> Option<Option<&'a Content>> {
    None
}

/// An HTML element; none is ever made.
#[elem(name = "elem")]
pub struct HtmlElem {
    /// The number of its tag.
    #[required]
    pub tag: i64,
}

/// Kinds of HTML elements.
pub mod tag {
    /// Tells that white space stays.
    pub fn is_whitespace_collapsing(_: i64) -> bool {
        false
    }

    /// Tells that nothing is grouped.
    pub fn should_group_into_pars(_: i64) -> bool {
        false
    }
}
