//! A compiled template, ready to print tickets.
//!
//! Stamping takes microseconds and happens in this process, if the template can be trusted with it: one of ours, or an
//! organiser's that has made a ticket before. The first ticket of an organiser's template is stamped in a process of the
//! compiler, which has limits; so are all tickets of a template that is suspected ([`Ready::pdf_apart`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use stampede_model::TicketDocument;
use stampede_render::compiled::{Compiled, Typeset};
use stampede_render::{Continuation, Piece, Prepared, Stamper, Values};

use crate::gate::{Gate, Turn};
use crate::proven::Proven;
use crate::{Compiler, Error, MergeSource};

/// Stampers kept for the next tickets.
const KEPT_STAMPERS: usize = 8;
/// Tickets in a piece of a merged PDF.
const MERGED_AT_ONCE: usize = 100;

/// A template, compiled for one event, with all that printing needs.
pub struct Ready {
    revision: Arc<str>,
    kind: Kind,
    organiser: Option<Organiser>,
}

/// An organiser's share of the compiler, and the state of its template.
struct Organiser {
    /// Whose turns its tickets take at the compiler.
    owner: Arc<str>,
    gate: Arc<Gate>,
    /// The output of the compiler, for stamping in another process.
    blob: Box<[u8]>,
    /// A ticket was stamped, in a process with limits.
    is_proven: AtomicBool,
    /// Remembers that when this value is gone.
    proven: Arc<Proven>,
    key: Arc<str>,
}

/// The owner of a template, and what its owners and tickets share.
#[derive(Clone)]
pub(crate) struct Ownership {
    /// Whose turns its tickets take at the compiler.
    pub(crate) owner: Arc<str>,
    /// Turns at the compiler.
    pub(crate) gate: Arc<Gate>,
    /// The templates that are proven.
    pub(crate) proven: Arc<Proven>,
    /// The template's name among them.
    pub(crate) key: Arc<str>,
}

enum Kind {
    Stamped {
        prepared: Arc<Prepared>,
        /// Each with scratch memory that the next ticket uses again.
        stampers: Mutex<Vec<Stamper>>,
    },
    Typeset(Box<Typeset>),
}

impl Ready {
    /// Reads the output of a compiler for a template of ours; `revision` is part of the fingerprint of its tickets.
    pub fn new(revision: &str, blob: &[u8]) -> Result<Self, Error> {
        let stamp = |error: &dyn std::fmt::Display| Error::Stamp(error.to_string());
        let kind = match stampede_render::blob::decode(blob).map_err(|error| stamp(&error))? {
            Compiled::Stamped(stamped) => Kind::Stamped {
                prepared: Arc::new(Prepared::new(*stamped).map_err(|error| stamp(&error))?),
                stampers: Mutex::default(),
            },
            Compiled::Typeset(typeset) => Kind::Typeset(Box::new(typeset)),
        };
        Ok(Self { revision: revision.into(), kind, organiser: None })
    }

    /// Reads the output of a compiler for a template of this organiser.
    pub(crate) fn of_organiser(
        revision: &str,
        blob: Vec<u8>,
        ownership: Ownership,
    ) -> Result<Self, Error> {
        let ready = Self::new(revision, &blob)?;
        // What is typeset always is in another process; the blob is not needed for that.
        let blob = if ready.slow_because().is_some() { Vec::new() } else { blob };
        let Ownership { owner, gate, proven, key } = ownership;
        let is_proven = AtomicBool::new(proven.contains(&key));
        let organiser = Organiser { owner, gate, blob: blob.into(), is_proven, proven, key };
        Ok(Self { organiser: Some(organiser), ..ready })
    }

    /// Part of the fingerprint of every PDF that it makes.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Whether the template belongs to an organiser, not to the operator or to the shipped designs.
    pub fn is_organisers(&self) -> bool {
        self.organiser.is_some()
    }

    /// Why it has to be typeset for every ticket; `None` when it is stamped.
    pub fn slow_because(&self) -> Option<&str> {
        match &self.kind {
            Kind::Stamped { .. } => None,
            Kind::Typeset(typeset) => Some(&typeset.reason),
        }
    }

    /// Whether the next ticket is made in another process, which takes its time.
    pub fn is_apart(&self) -> bool {
        self.slow_because().is_some() || self.is_unproven()
    }

    /// Its bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let blob = self.organiser.as_ref().map_or(0, |organiser| organiser.blob.len());
        blob + match &self.kind {
            Kind::Stamped { prepared, .. } => prepared.bytes(),
            Kind::Typeset(typeset) => typeset.files.iter().map(|(_, bytes)| bytes.len()).sum(),
        }
    }

    /// The PDF of one ticket; the same every time.
    pub async fn pdf(
        &self,
        compiler: &dyn Compiler,
        document: &TicketDocument,
    ) -> Result<Vec<u8>, Error> {
        match &self.kind {
            Kind::Stamped { prepared, stampers } if !self.is_unproven() => {
                stamped(prepared, stampers, document)
            }
            _ => self.pdf_apart(compiler, document).await,
        }
    }

    /// The PDF of one ticket, made in a process of the compiler: the same bytes.
    pub async fn pdf_apart(
        &self,
        compiler: &dyn Compiler,
        document: &TicketDocument,
    ) -> Result<Vec<u8>, Error> {
        let _turn = self.turn().await;
        match (&self.kind, &self.organiser) {
            (Kind::Typeset(typeset), _) => compiler.typeset(typeset, document).await,
            (Kind::Stamped { .. }, Some(organiser)) => {
                let pdf = compiler.stamp(&organiser.blob, document).await?;
                if !organiser.is_proven.swap(true, Ordering::Relaxed) {
                    organiser.proven.insert(&organiser.key);
                }
                Ok(pdf)
            }
            (Kind::Stamped { prepared, stampers }, None) => stamped(prepared, stampers, document),
        }
    }

    /// Draws a ticket that is stamped in this process; `None` if it is made in another one.
    pub(crate) fn draw<'r>(
        &'r self,
        document: &'r TicketDocument,
    ) -> Result<Option<Drawn<'r>>, Error> {
        match &self.kind {
            Kind::Stamped { prepared, stampers } if !self.is_unproven() => {
                Drawn::new(prepared, stampers, document).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// How many tickets are put into a piece of a merged PDF: of a template that is typeset, each takes its time.
    pub fn merged_at_once(&self) -> usize {
        if self.slow_because().is_some() { 1 } else { MERGED_AT_ONCE }
    }

    /// The next piece of a merged PDF, made in a process of the compiler.
    pub(crate) async fn piece(
        &self,
        compiler: &dyn Compiler,
        documents: &[TicketDocument],
        after: &Continuation,
    ) -> Result<Piece, Error> {
        let source = match (&self.kind, &self.organiser) {
            (Kind::Typeset(typeset), _) => MergeSource::Typeset(typeset),
            (Kind::Stamped { .. }, Some(organiser)) => MergeSource::Stamped(&organiser.blob),
            (Kind::Stamped { .. }, None) => {
                return Err(Error::Stamp(
                    "a template of ours is merged in this process".to_owned(),
                ));
            }
        };
        let _turn = self.turn().await;
        compiler.merge(source, documents, after).await
    }

    /// The template to stamp; `None` if its tickets are typeset.
    pub(crate) fn prepared(&self) -> Option<&Arc<Prepared>> {
        match &self.kind {
            Kind::Stamped { prepared, .. } => Some(prepared),
            Kind::Typeset(_) => None,
        }
    }

    /// Waits for the owner's turn at the compiler.
    async fn turn(&self) -> Option<Turn> {
        let Organiser { owner, gate, .. } = self.organiser.as_ref()?;
        Some(gate.turn(owner).await)
    }

    fn is_unproven(&self) -> bool {
        let organiser = self.organiser.as_ref();
        organiser.is_some_and(|organiser| !organiser.is_proven.load(Ordering::Relaxed))
    }
}

/// Stamps a ticket in this process.
pub(crate) fn stamp_here(blob: &[u8], document: &TicketDocument) -> Result<Vec<u8>, Error> {
    let ready = Ready::new("", blob)?;
    match &ready.kind {
        Kind::Stamped { prepared, stampers } => stamped(prepared, stampers, document),
        Kind::Typeset(_) => Err(Error::Stamp("the template is typeset, not stamped".to_owned())),
    }
}

fn stamped(
    prepared: &Arc<Prepared>,
    stampers: &Mutex<Vec<Stamper>>,
    document: &TicketDocument,
) -> Result<Vec<u8>, Error> {
    Ok(Drawn::new(prepared, stampers, document)?.write())
}

/// A ticket that is drawn and not written yet: writing takes most of the memory.
pub(crate) struct Drawn<'r> {
    stamper: Stamper,
    stampers: &'r Mutex<Vec<Stamper>>,
    document: &'r TicketDocument,
    /// Memory in bytes that writing takes at most.
    pub(crate) memory: usize,
}

impl<'r> Drawn<'r> {
    fn new(
        prepared: &Arc<Prepared>,
        stampers: &'r Mutex<Vec<Stamper>>,
        document: &'r TicketDocument,
    ) -> Result<Self, Error> {
        let kept = stampers.lock().pop();
        let mut stamper = kept.unwrap_or_else(|| Stamper::new(prepared.clone()));
        let memory = with_values(document, |values| stamper.draw(values));
        let memory = memory.map_err(|error| Error::Stamp(error.to_string()))?;
        Ok(Self { stamper, stampers, document, memory })
    }

    /// Writes the PDF.
    pub(crate) fn write(mut self) -> Vec<u8> {
        let mut pdf = Vec::new();
        with_values(self.document, |values| self.stamper.write(values, &mut pdf));
        let mut kept = self.stampers.lock();
        if kept.len() < KEPT_STAMPERS {
            kept.push(self.stamper);
        }
        pdf
    }
}

/// Calls with what a ticket says, field by field.
pub(crate) fn with_values<T>(document: &TicketDocument, work: impl FnOnce(&Values<'_>) -> T) -> T {
    let fields = document.fields();
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    work(&Values { id: &document.id, fields: &fields })
}
