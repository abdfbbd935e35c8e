//! The whole world a template can see: itself, the ticket's data, the QR code and the embedded fonts.
//!
//! There is no file system, package registry, network or clock behind it. Whatever else a template
//! asks for is refused with a message that says what it may read.

use std::sync::LazyLock;

use typst::diag::{FileError, FileResult};
use typst::foundations::{Bytes, Datetime, Duration};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::{Library, World};

use crate::fonts::SHIPPED;

// Typst keeps interned paths for ever, so these are interned once and not per ticket.
static TEMPLATE: LazyLock<FileId> = LazyLock::new(|| file_id("template.typ"));
static TICKET: LazyLock<FileId> = LazyLock::new(|| file_id("ticket.json"));
static QR: LazyLock<FileId> = LazyLock::new(|| file_id("qr.svg"));

/// The name under which the template appears in messages.
pub(crate) fn main_file() -> FileId {
    *TEMPLATE
}

/// One ticket's view of the world.
pub(crate) struct TicketWorld<'a> {
    /// Typst's standard library.
    pub(crate) library: &'a LazyHash<Library>,
    /// The template.
    pub(crate) source: &'a Source,
    /// `ticket.json`
    pub(crate) ticket: Bytes,
    /// `qr.svg`
    pub(crate) qr: Bytes,
}

impl World for TicketWorld<'_> {
    fn library(&self) -> &LazyHash<Library> {
        self.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &SHIPPED.book
    }

    fn main(&self) -> FileId {
        main_file()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == main_file() { Ok(self.source.clone()) } else { Err(refusal()) }
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        match id {
            id if id == *TICKET => Ok(self.ticket.clone()),
            id if id == *QR => Ok(self.qr.clone()),
            id if id == main_file() => Ok(Bytes::from_string(self.source.text().to_owned())),
            _ => Err(refusal()),
        }
    }

    fn font(&self, index: usize) -> Option<Font> {
        SHIPPED.faces.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        None
    }
}

fn refusal() -> FileError {
    FileError::Other(Some("a template can read only ticket.json and qr.svg".into()))
}

fn file_id(name: &str) -> FileId {
    let path = VirtualPath::new(name).expect("a plain file name is a valid path");
    RootedPath::new(VirtualRoot::Project, path).intern()
}
