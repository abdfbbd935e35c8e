//! A part of a merged PDF that another process makes.
//!
//! ```text
//!   Merged ── Continuation: next object, page, parent ──▶ piece() in a process with limits
//!     ▲                                                        │
//!     └──────────── append ◀── Piece: bytes and places ────────┘
//! ```
//!
//! The process that holds the document copies bytes and notes places: it neither reads the template nor draws. Places in
//! a piece are counted from its first byte.

use std::io::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use siphasher::sip128::Hasher128;
use std::hash::Hasher as _;

use super::{FAN, MergeError, Merged, Place};
use crate::draw::Values;
use crate::error::Error;
use crate::prepared::Prepared;

/// Where a document stands, for whoever makes its next piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// Objects that have a number.
    objects: u32,
    pages: u32,
    /// The node of the page tree that the next pages belong to, unless they begin another one.
    parent: Option<u32>,
    /// What was added to the numbers of the template's static objects, if they are written.
    shift: Option<u32>,
}

/// Tickets of one template, as a part of a merged PDF.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Piece {
    bytes: Vec<u8>,
    places: Vec<Place>,
    pages: Vec<u32>,
    parents: Vec<u32>,
    shift: u32,
    lang: Option<String>,
    identity: [u8; 16],
}

/// Makes the next piece of a document, of tickets of one template.
pub fn piece(
    template: &Arc<Prepared>,
    tickets: &[Values<'_>],
    after: &Continuation,
) -> Result<Piece, MergeError> {
    let mut merged = Merged::new(Vec::new(), "");
    if after.objects > 0 {
        merged.buffer.clear();
    }
    merged.places = vec![Place::Reserved; after.objects as usize];
    merged.pages_before = after.pages as usize;
    merged.parents = after.parent.into_iter().collect();
    if let Some(shift) = after.shift {
        merged.templates.insert(template.hash, shift);
    }
    for values in tickets {
        merged.add(template, values)?;
    }
    if let Some(group) = merged.group.take() {
        merged.end_group(group)?;
    }
    let mut bytes = merged.out;
    bytes.append(&mut merged.buffer);
    Ok(Piece {
        bytes,
        places: merged.places.split_off(after.objects as usize),
        pages: merged.pages,
        parents: merged.parents.split_off(usize::from(after.parent.is_some())),
        shift: merged.templates.get(&template.hash).copied().unwrap_or_default(),
        lang: merged.lang,
        identity: merged.identity.finish128().as_bytes(),
    })
}

impl<W: Write> Merged<W> {
    /// Where the next piece begins. `template` is the one of its tickets, if all pieces with it share its static part.
    pub fn continuation(
        &mut self,
        template: Option<&Prepared>,
    ) -> Result<Continuation, MergeError> {
        if let Some(group) = self.group.take() {
            self.end_group(group)?;
        }
        Ok(Continuation {
            objects: self.places.len() as u32,
            pages: self.pages.len() as u32,
            parent: self.parents.last().copied(),
            shift: template.and_then(|template| self.templates.get(&template.hash).copied()),
        })
    }

    /// Adds a piece that was made for [`Self::continuation`], with the same template. A piece that does not fit is an
    /// error and leaves the document as it was.
    pub fn append(&mut self, template: Option<&Prepared>, piece: Piece) -> Result<(), MergeError> {
        let before = self.places.len();
        check(&piece, before, self.pages.len(), self.parents.len())?;
        if before == 0 {
            // The first template brings the first line of the file along.
            self.buffer.clear();
        }
        let start = self.written + self.buffer.len() as u64;
        self.places.extend(piece.places.into_iter().map(|place| match place {
            Place::At(at) => Place::At(start + at),
            other => other,
        }));
        self.pages.extend(piece.pages);
        self.parents.extend(piece.parents);
        if let Some(template) = template {
            self.templates.insert(template.hash, piece.shift);
        }
        self.lang = self.lang.take().or(piece.lang);
        self.identity.write(&piece.identity);
        self.buffer.extend_from_slice(&piece.bytes);
        self.flush()?;
        Ok(())
    }
}

/// Refuses a piece that would make the document unreadable: its process may be damaged.
fn check(piece: &Piece, objects: usize, pages: usize, parents: usize) -> Result<(), Error> {
    let own = objects + 1..=objects + piece.places.len();
    let is_own = |number: &u32| own.contains(&(*number as usize));
    let is_inside = |place: &Place| match *place {
        Place::At(at) => at < piece.bytes.len() as u64,
        Place::InStream { stream, .. } => is_own(&stream),
        Place::Reserved => true,
    };
    let nodes = (pages + piece.pages.len()).div_ceil(FAN);
    let is_whole = piece.pages.iter().chain(&piece.parents).all(is_own)
        && piece.places.iter().all(is_inside)
        && parents + piece.parents.len() == nodes;
    if is_whole { Ok(()) } else { Err(Error::Template("its pages do not fit together".to_owned())) }
}
