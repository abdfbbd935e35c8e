//! Typst in this process, with gates: a test can hold up PDFs that are being made, and templates that are compiled.

use std::sync::atomic::{AtomicUsize, Ordering};

use stampede_model::{Event, TemplateFiles, TicketDocument};
use stampede_press::{Answer, Compiler, Design, Error, MergeSource, Picture, Published};
use stampede_render::compiled::Typeset;
use stampede_render::{Continuation, Piece};
use stampede_template::{Bundle, EventData};
use tokio::sync::Semaphore;

/// A template that looks at its ticket, so every ticket is typeset; one seat cannot be printed.
pub(crate) const TEMPLATE: &str = r#"
#let t = json("ticket.json")
#if t.seat == "BROKEN" { panic("no such seat") }
#t.name
"#;

/// A template that is stamped.
pub(crate) const STAMPED: &str = "Hi #field(\"name\") #qr(40mm)";

/// A template that is stamped, and compiled when the test lets it pass.
pub(crate) const COLD: &str = "// cold\nHi #field(\"name\") #qr(40mm)";

/// Compiles and typesets.
pub(crate) struct Typst {
    /// Cold templates that may be compiled.
    pub(crate) cold: Semaphore,
    /// Pieces of merged PDFs that were made.
    pub(crate) pieces: AtomicUsize,
    /// Tickets that were stamped apart.
    pub(crate) apart: AtomicUsize,
    /// Tickets that may pass.
    gate: Semaphore,
    /// Tickets that have come to the gate.
    arrived: AtomicUsize,
}

impl Typst {
    /// Lets so many tickets pass.
    pub(crate) fn new(pass: usize) -> Self {
        Self {
            cold: Semaphore::new(0),
            pieces: AtomicUsize::new(0),
            apart: AtomicUsize::new(0),
            gate: Semaphore::new(pass),
            arrived: AtomicUsize::new(0),
        }
    }

    /// Lets one more ticket pass.
    pub(crate) fn let_pass(&self, tickets: usize) {
        self.gate.add_permits(tickets);
    }

    /// Tickets that have come to the gate.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }
}

impl Compiler for Typst {
    fn version(&self) -> &str {
        "of this test"
    }

    fn designs(&self) -> &[Design] {
        &[]
    }

    fn missing_glyphs(&self, text: &str) -> Vec<char> {
        stampede_template::missing_glyphs(text)
    }

    fn compile<'a>(&'a self, files: &'a TemplateFiles, event: &'a Event) -> Answer<'a, Published> {
        Box::pin(async move {
            let bundle = Bundle::new(files.clone().into_map()).map_err(Error::Template)?;
            if files.get("template.typ").is_some_and(|text| text.starts_with(b"// cold")) {
                self.cold.acquire().await.unwrap().forget();
            }
            let made = stampede_template::compile(&bundle, &EventData::from(event));
            let made = made.map_err(Error::Template)?;
            let stampede_template::Published { blob, warnings, pages, fields, .. } = made;
            Ok(Published { blob, warnings, pages, fields })
        })
    }

    fn typeset<'a>(
        &'a self,
        template: &'a Typeset,
        document: &'a TicketDocument,
    ) -> Answer<'a, Vec<u8>> {
        Box::pin(async move {
            self.arrived.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            stampede_template::typeset(template, document).map_err(Error::Template)
        })
    }

    fn merge<'a>(
        &'a self,
        source: MergeSource<'a>,
        documents: &'a [TicketDocument],
        after: &'a Continuation,
    ) -> Answer<'a, Piece> {
        self.pieces.fetch_add(1, Ordering::SeqCst);
        let made = match source {
            MergeSource::Stamped(blob) => stampede_template::merge_blob(blob, documents, after),
            MergeSource::Typeset(template) => {
                stampede_template::merge_typeset(template, &documents[0], after)
            }
        };
        Box::pin(async move { made.map_err(Error::Template) })
    }

    fn stamp<'a>(&'a self, blob: &'a [u8], document: &'a TicketDocument) -> Answer<'a, Vec<u8>> {
        self.apart.fetch_add(1, Ordering::SeqCst);
        let made = stampede_template::stamp_blob(blob, document);
        Box::pin(async move { made.map_err(Error::Template) })
    }

    fn picture<'a>(&'a self, _: &'a [u8], _: Picture) -> Answer<'a, Vec<u8>> {
        Box::pin(async { Err(Error::Unavailable("no pictures in this test".into())) })
    }
}
