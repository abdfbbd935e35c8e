//! Many tickets in one PDF, written piece by piece: the caller decides how fast it grows.
//!
//! Tickets of our templates are stamped in this process. Those of organisers are put into pieces by processes of the
//! compiler, which have limits; this process copies their bytes.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use stampede_model::TicketDocument;
use stampede_render::Merged;

use crate::ready::with_values;
use crate::{Compiler, Error, Ready};

/// Puts tickets into one PDF. Written bytes wait until they are [taken](Self::take).
pub struct Merger {
    merged: Merged<Outlet>,
    outlet: Outlet,
}

/// Collects bytes that were written and not taken yet.
#[derive(Clone, Default)]
struct Outlet(Arc<Mutex<Vec<u8>>>);

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Merger {
    /// Begins a document.
    pub fn new(title: &str) -> Self {
        let outlet = Outlet::default();
        Self { merged: Merged::new(outlet.clone(), title), outlet }
    }

    /// Adds the pages of some tickets: [`Ready::merged_at_once`] at most.
    pub async fn add(
        &mut self,
        compiler: &dyn Compiler,
        ready: &Ready,
        documents: &[TicketDocument],
    ) -> Result<(), Error> {
        let template = ready.prepared();
        if let Some(template) = template.filter(|_| !ready.is_organisers()) {
            return documents.iter().try_for_each(|document| {
                with_values(document, |values| self.merged.add(template, values)).map_err(failed)
            });
        }
        let template = template.map(|template| &**template);
        let after = self.merged.continuation(template).map_err(failed)?;
        let piece = ready.piece(compiler, documents, &after).await?;
        self.merged.append(template, piece).map_err(failed)
    }

    /// The bytes that were written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outlet.0.lock())
    }

    /// Bytes that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.outlet.0.lock().len()
    }

    /// Ends the document; returns the bytes that were not taken yet.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        self.merged.finish().map_err(failed)?;
        let rest = std::mem::take(&mut *self.outlet.0.lock());
        Ok(rest)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Stamp(error.to_string())
}
