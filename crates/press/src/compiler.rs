//! The interface to Typst.

use std::future::Future;
use std::pin::Pin;

use stampede_model::{Diagnostic, Event, TemplateFiles, TicketDocument};
use stampede_render::compiled::Typeset;
use stampede_render::{Continuation, Piece};

use crate::Error;

/// The result of a compiler, later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A design that ships.
#[derive(Debug, Clone)]
pub struct Design {
    /// Its name in requests: `a4`.
    pub name: String,
    /// Its title, for people.
    pub title: String,
    /// Its files.
    pub files: TemplateFiles,
}

/// A template, compiled for an event.
#[derive(Debug, Clone)]
pub struct Published {
    /// For `stampede_render::decode`.
    pub blob: Vec<u8>,
    /// Warnings for its author.
    pub warnings: Vec<Diagnostic>,
    /// Width and height of its pages in points.
    pub pages: Vec<(f32, f32)>,
    /// The values of a ticket that its fields show; empty for a template that is typeset.
    pub fields: Vec<String>,
}

/// A picture of a ticket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Picture {
    /// The page, from 0.
    pub page: u32,
    /// Dots per inch.
    pub dpi: f32,
}

/// The template of tickets that are merged.
#[derive(Clone, Copy)]
pub enum MergeSource<'a> {
    /// The output of the compiler for a template that is stamped.
    Stamped(&'a [u8]),
    /// A template that is typeset, ticket by ticket.
    Typeset(&'a Typeset),
}

/// Compiles and typesets templates. Templates are code of organisers, so this happens in other processes,
/// within limits of time and memory.
pub trait Compiler: Send + Sync + 'static {
    /// Changes whenever the same files and values could give other bytes.
    fn version(&self) -> &str;

    /// The templates that ship; the first is the default.
    fn designs(&self) -> &[Design];

    /// The characters of a text that no font of ours has, each once.
    fn missing_glyphs(&self, text: &str) -> Vec<char>;

    /// Compiles a template for an event.
    fn compile<'a>(&'a self, files: &'a TemplateFiles, event: &'a Event) -> Answer<'a, Published>;

    /// All mistakes of a template that does not compile; empty if it compiles, or if they cannot be found.
    fn mistakes<'a>(
        &'a self,
        _files: &'a TemplateFiles,
        _event: &'a Event,
    ) -> Answer<'a, Vec<Diagnostic>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The PDF of a ticket, of a template that cannot be stamped.
    fn typeset<'a>(
        &'a self,
        template: &'a Typeset,
        document: &'a TicketDocument,
    ) -> Answer<'a, Vec<u8>>;

    /// The next piece of a merged PDF, with these tickets, in another process within limits of time and memory.
    fn merge<'a>(
        &'a self,
        source: MergeSource<'a>,
        documents: &'a [TicketDocument],
        after: &'a Continuation,
    ) -> Answer<'a, Piece>;

    /// The PDF of a ticket, of a template that can be stamped, in another process within limits of time and
    /// memory. A compiler without such processes stamps in this one.
    fn stamp<'a>(&'a self, blob: &'a [u8], document: &'a TicketDocument) -> Answer<'a, Vec<u8>> {
        Box::pin(async move { crate::ready::stamp_here(blob, document) })
    }

    /// A picture of a page of a PDF, as PNG.
    fn picture<'a>(&'a self, pdf: &'a [u8], picture: Picture) -> Answer<'a, Vec<u8>>;
}

/// Compiles a template for its author and lists all of its mistakes, not only the first. That takes longer, so
/// it is not done for printing.
pub async fn compile_for_author(
    compiler: &dyn Compiler,
    files: &TemplateFiles,
    event: &Event,
) -> Result<Published, Error> {
    match compiler.compile(files, event).await {
        Err(Error::Template(first)) => match compiler.mistakes(files, event).await {
            Ok(all) if all.len() > first.len() => Err(Error::Template(all)),
            // The search took too long or found nothing else: the first mistakes are answered.
            _ => Err(Error::Template(first)),
        },
        result => result,
    }
}
