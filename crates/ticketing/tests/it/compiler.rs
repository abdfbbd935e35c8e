//! Typst in this process, with a gate: a test can hold up PDFs that are being made.

use std::sync::atomic::{AtomicUsize, Ordering};

use stampede_model::{Event, TemplateFiles, TicketDocument};
use stampede_press::{Answer, Compiler, Design, Error, Picture, Published};
use stampede_render::compiled::{Stamped, Typeset};
use stampede_template::{Bundle, EventData};
use tokio::sync::Semaphore;

/// A template that looks at its ticket, so every ticket is typeset; one seat cannot be printed.
pub(crate) const TEMPLATE: &str = r#"
#let t = json("ticket.json")
#if t.seat == "BROKEN" { panic("no such seat") }
#t.name
"#;

/// Compiles and typesets.
pub(crate) struct Typst {
    /// Tickets that may pass.
    gate: Semaphore,
    /// Tickets that have come to the gate.
    arrived: AtomicUsize,
}

impl Typst {
    /// Lets so many tickets pass.
    pub(crate) fn new(pass: usize) -> Self {
        Self { gate: Semaphore::new(pass), arrived: AtomicUsize::new(0) }
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

    fn typeset_static<'a>(
        &'a self,
        template: &'a Typeset,
        document: &'a TicketDocument,
    ) -> Answer<'a, Box<Stamped>> {
        Box::pin(async move {
            let made = stampede_template::typeset_compiled(template, document);
            made.map(Box::new).map_err(Error::Template)
        })
    }

    fn picture<'a>(&'a self, _: &'a [u8], _: Picture) -> Answer<'a, Vec<u8>> {
        Box::pin(async { Err(Error::Unavailable("no pictures in this test".into())) })
    }
}
