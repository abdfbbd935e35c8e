//! A compiled template, ready to print tickets.

use std::sync::Arc;

use parking_lot::Mutex;
use stampede_model::TicketDocument;
use stampede_render::compiled::{Compiled, Typeset};
use stampede_render::{Prepared, Stamper, Values};

use crate::{Compiler, Error};

/// Stampers kept for the next tickets.
const KEPT_STAMPERS: usize = 8;

/// A template, compiled for one event, with all that printing needs.
pub struct Ready {
    revision: Arc<str>,
    kind: Kind,
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
    /// Reads the output of a compiler; `revision` is part of the fingerprint of its tickets.
    pub fn new(revision: &str, blob: &[u8]) -> Result<Self, Error> {
        let stamp = |error: &dyn std::fmt::Display| Error::Stamp(error.to_string());
        let kind = match stampede_render::blob::decode(blob).map_err(|error| stamp(&error))? {
            Compiled::Stamped(stamped) => Kind::Stamped {
                prepared: Arc::new(Prepared::new(*stamped).map_err(|error| stamp(&error))?),
                stampers: Mutex::default(),
            },
            Compiled::Typeset(typeset) => Kind::Typeset(Box::new(typeset)),
        };
        Ok(Self { revision: revision.into(), kind })
    }

    /// Part of the fingerprint of every PDF that it makes.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Why it has to be typeset for every ticket; `None` when it is stamped.
    pub fn slow_because(&self) -> Option<&str> {
        match &self.kind {
            Kind::Stamped { .. } => None,
            Kind::Typeset(typeset) => Some(&typeset.reason),
        }
    }

    /// The PDF of one ticket; the same every time.
    pub async fn pdf(
        &self,
        compiler: &dyn Compiler,
        document: &TicketDocument,
    ) -> Result<Vec<u8>, Error> {
        match &self.kind {
            Kind::Stamped { prepared, stampers } => stamped(prepared, stampers, document),
            Kind::Typeset(typeset) => compiler.typeset(typeset, document).await,
        }
    }

    /// The template in a form that can be stamped; for a slow one, this one ticket with all values in
    /// place.
    pub(crate) async fn stampable(
        &self,
        compiler: &dyn Compiler,
        document: &TicketDocument,
    ) -> Result<Arc<Prepared>, Error> {
        match &self.kind {
            Kind::Stamped { prepared, .. } => Ok(prepared.clone()),
            Kind::Typeset(typeset) => {
                let page = compiler.typeset_static(typeset, document).await?;
                let prepared = Prepared::new(*page);
                Ok(Arc::new(prepared.map_err(|error| Error::Stamp(error.to_string()))?))
            }
        }
    }

    /// The template to stamp; `None` if its tickets are typeset.
    pub(crate) fn prepared(&self) -> Option<&Prepared> {
        match &self.kind {
            Kind::Stamped { prepared, .. } => Some(prepared),
            Kind::Typeset(_) => None,
        }
    }
}

fn stamped(
    prepared: &Arc<Prepared>,
    stampers: &Mutex<Vec<Stamper>>,
    document: &TicketDocument,
) -> Result<Vec<u8>, Error> {
    let kept = stampers.lock().pop();
    let mut stamper = kept.unwrap_or_else(|| Stamper::new(prepared.clone()));
    let mut pdf = Vec::new();
    with_values(document, |values| stamper.stamp(values, &mut pdf))
        .map_err(|error| Error::Stamp(error.to_string()))?;
    let mut kept = stampers.lock();
    if kept.len() < KEPT_STAMPERS {
        kept.push(stamper);
    }
    Ok(pdf)
}

/// Calls with what a ticket says, field by field.
pub(crate) fn with_values<T>(document: &TicketDocument, work: impl FnOnce(&Values<'_>) -> T) -> T {
    let fields = document.fields();
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    work(&Values { id: &document.id, fields: &fields })
}
