//! Renders tickets with one template. Shared by all threads of a worker.
//!
//! Typst remembers results of earlier work in a cache of the whole process. What tickets of one
//! template have in common (its fonts, shadows, labels) is found there again, which makes a warm
//! rendering fast; what was only one ticket's is thrown out after a while, which bounds memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stampede_model::TicketDocument;
use typst::foundations::{Bytes, Smart};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt};
use typst_layout::PagedDocument;
use typst_pdf::PdfOptions;

use crate::ticket_world::TicketWorld;
use crate::typeset::titled;
use crate::{Error, Template, qr};

/// After this many renderings the cache is swept.
const SWEEP_EVERY: usize = 8;

/// A cached result goes at the second sweep in a row that finds it unused.
const SWEEPS_SURVIVED: usize = 2;

/// Turns tickets into PDFs with one template; clones share everything.
#[derive(Debug, Clone)]
pub struct Typesetter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    template: Template,
    library: LazyHash<Library>,
    rendered: AtomicUsize,
}

impl Typesetter {
    /// A typesetter for the template.
    pub fn new(template: Template) -> Self {
        let library = LazyHash::new(Library::default());
        Self { shared: Arc::new(Shared { template, library, rendered: AtomicUsize::new(0) }) }
    }

    /// The template it renders with.
    pub fn template(&self) -> &Template {
        &self.shared.template
    }

    /// Renders one ticket; equal tickets give equal bytes in every process.
    pub fn render(&self, document: &TicketDocument) -> Result<Vec<u8>, Error> {
        let bundle = TicketWorld {
            library: &self.shared.library,
            source: self.shared.template.source(),
            // Serialising a struct of strings cannot fail.
            ticket: Bytes::new(serde_json::to_vec(document).unwrap_or_default()),
            qr: Bytes::from_string(qr::Symbol::of(&document.code)?.svg()),
        };
        let pdf = typst::compile::<PagedDocument>(&bundle)
            .output
            .and_then(|pages| typst_pdf::pdf(&titled(pages, document), &options(document)))
            .map_err(|diagnostics| Error::template(&bundle, &diagnostics));
        self.sweep();
        pdf
    }

    /// Now and then throws out of Typst's cache what no recent ticket needed.
    fn sweep(&self) {
        if self.shared.rendered.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            comemo::evict(SWEEPS_SURVIVED);
        }
    }
}

/// No timestamp, and an identifier that is the ticket's own: nothing that differs between two runs.
fn options(document: &TicketDocument) -> PdfOptions {
    PdfOptions {
        ident: Smart::Custom(document.id.clone()),
        creator: Smart::Custom(Some("Stampede".to_owned())),
        timestamp: None,
        ..PdfOptions::default()
    }
}
