//! A compiler of templates that compiles none: these tests make no tickets.

use stampede_model::{Event, TemplateFiles, TicketDocument};
use stampede_press::{Answer, Compiler, Design, Error, MergeSource, Picture, Published};
use stampede_render::compiled::Typeset;
use stampede_render::{Continuation, Piece};

pub(crate) struct NoCompiler;

fn none<T: Send + 'static>() -> Answer<'static, T> {
    Box::pin(async { Err(Error::Unavailable("no tickets in these tests".into())) })
}

impl Compiler for NoCompiler {
    fn version(&self) -> &str {
        "none"
    }

    fn designs(&self) -> &[Design] {
        &[]
    }

    fn missing_glyphs(&self, _: &str) -> Vec<char> {
        Vec::new()
    }

    fn compile<'a>(&'a self, _: &'a TemplateFiles, _: &'a Event) -> Answer<'a, Published> {
        none()
    }

    fn typeset<'a>(&'a self, _: &'a Typeset, _: &'a TicketDocument) -> Answer<'a, Vec<u8>> {
        none()
    }

    fn merge<'a>(
        &'a self,
        _: MergeSource<'a>,
        _: &'a [TicketDocument],
        _: &'a Continuation,
    ) -> Answer<'a, Piece> {
        none()
    }

    fn picture<'a>(&'a self, _: &'a [u8], _: Picture) -> Answer<'a, Vec<u8>> {
        none()
    }
}
