//! Implements the press's `Compiler` with Typst in child processes of this program, which can be killed.

use std::sync::Arc;

use anyhow::{Context, Result};
use stampede_model::{Diagnostic, Event, TemplateFiles, TicketDocument};
use stampede_press::{Answer, Compiler, Design, Error, MergeSource, Picture, Published};
use stampede_render::compiled::Typeset;
use stampede_render::{Continuation, Piece};
use stampede_template::sandbox::{self, Limits};
use stampede_template::{Bundle, EventData, Sandbox};

/// Makes the compiler; its first child process starts with the first template.
pub(crate) fn start() -> Result<Arc<dyn Compiler>> {
    let sandbox = Sandbox::of_this_program(Limits::default());
    Ok(Arc::new(Typst { sandbox, designs: designs()?, version: stampede_template::version() }))
}

/// The designs that ship; the first is the default.
pub(crate) fn designs() -> Result<Vec<Design>> {
    let designs = stampede_template::shipped().iter().map(|design| {
        let files = TemplateFiles::new(design.bundle.files().clone())
            .with_context(|| format!("the design {}", design.name))?;
        Ok(Design { name: design.name.to_owned(), title: design.title.to_owned(), files })
    });
    designs.collect()
}

/// The design for events without a template of their own.
pub(crate) fn default_design() -> Result<TemplateFiles> {
    let first = designs()?.into_iter().next().context("no design ships with this program")?;
    Ok(first.files)
}

struct Typst {
    sandbox: Sandbox,
    designs: Vec<Design>,
    version: &'static str,
}

impl Compiler for Typst {
    fn version(&self) -> &str {
        self.version
    }

    fn designs(&self) -> &[Design] {
        &self.designs
    }

    fn missing_glyphs(&self, text: &str) -> Vec<char> {
        stampede_template::missing_glyphs(text)
    }

    fn compile<'a>(&'a self, files: &'a TemplateFiles, event: &'a Event) -> Answer<'a, Published> {
        Box::pin(async move {
            let bundle = Bundle::new(files.clone().into_map()).map_err(Error::Template)?;
            let made = self.sandbox.compile(&bundle, &EventData::from(event)).await;
            let made = made.map_err(failed)?;
            let stampede_template::Published { blob, warnings, pages, fields, .. } = made;
            Ok(Published { blob, warnings, pages, fields })
        })
    }

    fn mistakes<'a>(
        &'a self,
        files: &'a TemplateFiles,
        event: &'a Event,
    ) -> Answer<'a, Vec<Diagnostic>> {
        Box::pin(async move {
            let bundle = Bundle::new(files.clone().into_map()).map_err(Error::Template)?;
            self.sandbox.mistakes(&bundle, &EventData::from(event)).await.map_err(failed)
        })
    }

    fn typeset<'a>(
        &'a self,
        template: &'a Typeset,
        document: &'a TicketDocument,
    ) -> Answer<'a, Vec<u8>> {
        Box::pin(async move { self.sandbox.typeset(template, document).await.map_err(failed) })
    }

    fn merge<'a>(
        &'a self,
        source: MergeSource<'a>,
        documents: &'a [TicketDocument],
        after: &'a Continuation,
    ) -> Answer<'a, Piece> {
        Box::pin(async move {
            let made = match (source, documents) {
                (MergeSource::Stamped(blob), _) => self.sandbox.merge(blob, documents, after).await,
                (MergeSource::Typeset(template), [document]) => {
                    self.sandbox.merge_typeset(template, document, after).await
                }
                (MergeSource::Typeset(_), _) => {
                    return Err(Error::Stamp("typeset tickets are merged one by one".to_owned()));
                }
            };
            made.map_err(failed)
        })
    }

    fn stamp<'a>(&'a self, blob: &'a [u8], document: &'a TicketDocument) -> Answer<'a, Vec<u8>> {
        Box::pin(async move { self.sandbox.stamp(blob, document).await.map_err(failed) })
    }

    fn picture<'a>(&'a self, pdf: &'a [u8], picture: Picture) -> Answer<'a, Vec<u8>> {
        Box::pin(async move {
            self.sandbox.preview_png(pdf, picture.page, picture.dpi).await.map_err(failed)
        })
    }
}

fn failed(error: sandbox::Error) -> Error {
    match error {
        sandbox::Error::Template(diagnostics) => Error::Template(diagnostics),
        sandbox::Error::Unavailable(reason) => Error::Unavailable(reason),
        crashed @ (sandbox::Error::TooMuchMemory(_) | sandbox::Error::Crashed(_)) => {
            Error::Crashed(crashed.to_string())
        }
        // Out of time.
        stopped => Error::Stopped(stopped.to_string()),
    }
}
