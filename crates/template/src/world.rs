//! The whole world a template can see: its bundle, its event, the prelude, the fonts, and the ticket
//! if it asks for it.
//!
//! There is no file system, package registry, network or clock behind it. Whether the template looked
//! at the ticket is remembered: then it cannot be stamped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use serde::Serialize;
use stampede_model::TicketDocument;
use typst::diag::{FileError, FileResult};
use typst::foundations::{Bytes, Datetime, Duration};
use typst::syntax::{FileId, Source};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt, World};

use crate::bundle::MAIN_FILE;
use crate::fonts::Fonts;
use crate::prelude::{self, Mode, file_id};
use crate::{Bundle, Diagnostic, EventData, qr};

/// Typst's standard library: constant, only too large to make and hash for every ticket.
static LIBRARY: LazyLock<LazyHash<Library>> = LazyLock::new(|| LazyHash::new(Library::default()));

/// What a template brings along, and what it sees of its event: the same for all tickets.
pub(crate) struct Kit {
    fonts: Arc<Fonts>,
    sources: HashMap<FileId, Source>,
    files: HashMap<FileId, Bytes>,
}

impl Kit {
    /// Parses sources and fonts.
    pub(crate) fn new(
        bundle: &Bundle,
        event: &EventData,
        mode: Mode,
    ) -> Result<Self, Vec<Diagnostic>> {
        let fonts = Fonts::with_bundle(bundle)?;
        let main = file_id(MAIN_FILE);
        let mut sources = HashMap::from([(prelude::file(), prelude::source())]);
        let mut files = HashMap::new();
        for (name, bytes) in bundle.files() {
            let id = file_id(name);
            if let Some(text) =
                name.ends_with(".typ").then(|| std::str::from_utf8(bytes).ok()).flatten()
            {
                let first = if id == main { prelude::FIRST_LINES } else { "" };
                sources.insert(id, Source::new(id, format!("{first}{text}")));
            }
            files.insert(id, Bytes::new(bytes.clone()));
        }
        files.extend([
            (file_id("stampede.json"), Bytes::from_string(prelude::setup(mode))),
            (file_id("words.json"), Bytes::from_string(prelude::WORDS.to_owned())),
            (file_id("event.json"), json(event)),
        ]);
        Ok(Self { fonts, sources, files })
    }
}

/// What one compilation of a template sees.
pub(crate) struct TemplateWorld {
    kit: Arc<Kit>,
    main: FileId,
    /// Files that tell about the ticket.
    ticket: HashMap<FileId, Bytes>,
    looked_at_ticket: AtomicBool,
}

impl TemplateWorld {
    /// The world of a template and, in its eyes, one ticket.
    pub(crate) fn new(kit: Arc<Kit>, ticket: &TicketDocument) -> Result<Self, Vec<Diagnostic>> {
        let symbol = qr::Symbol::of(&ticket.code).map_err(|mistake| vec![mistake])?;
        let values: serde_json::Map<_, _> = ticket
            .fields()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into_owned().into()))
            .collect();
        let pieces: serde_json::Map<_, _> = ticket
            .fields()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), pieces(&value).into()))
            .collect();
        let ticket = HashMap::from([
            (file_id("ticket.json"), json(ticket)),
            (file_id("values.json"), json(&values)),
            (file_id("pieces.json"), json(&pieces)),
            (file_id("qr.json"), Bytes::from_string(symbol.json())),
            (file_id("qr.svg"), Bytes::from_string(symbol.svg())),
        ]);
        let main = file_id(MAIN_FILE);
        Ok(Self { kit, main, ticket, looked_at_ticket: AtomicBool::new(false) })
    }

    /// Whether anything of the ticket was read.
    pub(crate) fn looked_at_ticket(&self) -> bool {
        self.looked_at_ticket.load(Ordering::Relaxed)
    }

    /// Whether the template asks for words in the event's language.
    pub(crate) fn uses_labels(&self) -> bool {
        let mut sources = self.kit.sources.iter().filter(|(id, _)| **id != prelude::file());
        sources.any(|(_, source)| source.text().contains("label("))
    }

    /// Its fonts.
    pub(crate) fn fonts(&self) -> &Fonts {
        &self.kit.fonts
    }

    /// Where the template asks for the ticket, for people: the first place that names it.
    pub(crate) fn where_ticket_is_read(&self) -> Option<String> {
        let mut places: Vec<String> = Vec::new();
        for (id, source) in self.kit.sources.iter().filter(|(id, _)| **id != prelude::file()) {
            let before = if *id == self.main { prelude::LINES_BEFORE } else { 0 };
            let name = id.get().vpath().get_without_slash().to_owned();
            for (line, text) in source.text().lines().enumerate().skip(before) {
                let found = ["ticket(", "ticket.json", "qr.svg", "values.json"]
                    .iter()
                    .filter_map(|word| Some((text.find(word)?, *word)))
                    .min();
                if let Some((byte, word)) = found {
                    let column = text[..byte].chars().count() + 1;
                    let word = word.trim_end_matches('(');
                    places.push(format!("{name}:{}:{column}: reads {word}", line + 1 - before));
                    break;
                }
            }
        }
        places.into_iter().min_by_key(|place| (!place.starts_with(MAIN_FILE), place.clone()))
    }
}

impl World for TemplateWorld {
    fn library(&self) -> &LazyHash<Library> {
        &LIBRARY
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.kit.fonts.book
    }

    fn main(&self) -> FileId {
        self.main
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        self.kit.sources.get(&id).cloned().ok_or_else(|| refusal(id))
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        if let Some(bytes) = self.ticket.get(&id) {
            self.looked_at_ticket.store(true, Ordering::Relaxed);
            return Ok(bytes.clone());
        }
        self.kit.files.get(&id).cloned().ok_or_else(|| refusal(id))
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.kit.fonts.faces.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        None
    }
}

fn json(value: &impl Serialize) -> Bytes {
    // Serialising structs and maps of strings cannot fail.
    Bytes::from_string(serde_json::to_string(value).unwrap_or_default())
}

/// The text as it is printed, cut where a line may be broken: as the stamper does it.
fn pieces(value: &str) -> Vec<String> {
    let clean = stampede_render::clean(value);
    let mut start = 0;
    let mut pieces = Vec::new();
    for (end, _) in unicode_linebreak::linebreaks(&clean) {
        pieces.push(clean[start..end].to_owned());
        start = end;
    }
    pieces
}

fn refusal(id: FileId) -> FileError {
    let name = id.get().vpath().get_without_slash().to_owned();
    let message = match id.get().root() {
        typst::syntax::VirtualRoot::Package(_) => {
            "a template cannot load packages: put their files into its bundle".to_owned()
        }
        typst::syntax::VirtualRoot::Project => format!(
            "there is no {name} in the bundle; a template can read only files of its bundle, event.json, ticket.json and qr.svg"
        ),
    };
    FileError::Other(Some(message.into()))
}
