//! Finds the template of an event and compiles it, once for all processes.
//!
//! Work for organisers' templates at the compiler takes turns, fairly for each owner (`gate.rs`). PDFs that are stamped
//! at the same time share [`ROOM`] bytes of memory: each claims what it needs, which is known once it is drawn.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use stampede_model::{Event, TemplateChoice, TemplateFiles, TicketDocument, Timestamp};
use stampede_store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::cache::Cache;
use crate::gate::Gate;
use crate::proven::Proven;
use crate::ready::Ownership;
use crate::{Compiler, Design, Error, Picture, Published, Ready, Share, compile_for_author};

/// Memory in bytes for PDFs that are stamped at the same time; one that takes more is stamped alone.
const ROOM: usize = 256 << 20;
/// Room is given out in pieces of so many bytes.
const PIECE: usize = 1 << 10;

/// Prints tickets with the templates of their events. Cheap to clone.
#[derive(Clone)]
pub struct Press {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    compiler: Arc<dyn Compiler>,
    default: Source,
    /// Hashes of the designs' files, in the order of the designs.
    design_hashes: Vec<String>,
    cache: Cache,
    gate: Arc<Gate>,
    proven: Arc<Proven>,
    room: Arc<Semaphore>,
}

/// Memory that a PDF takes; free again when the value is dropped.
pub struct Room {
    #[expect(dead_code, reason = "given back when it is dropped")]
    permit: Option<OwnedSemaphorePermit>,
}

/// Files of a template that are known from the start, with their hash.
struct Source {
    files: TemplateFiles,
    hash: String,
}

/// Where the files of an event's template are.
enum Place {
    Default,
    Shipped(usize),
    Stored(TemplateChoice),
}

/// The template of an event, found but perhaps not compiled.
pub struct Found<'a> {
    press: &'a Press,
    event: &'a Event,
    place: Place,
    revision: String,
    key: String,
}

impl Found<'_> {
    /// Part of the fingerprint of every PDF that it makes.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Names the template together with the event that it is compiled for.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether the template belongs to an organiser, not to the operator or to the shipped designs.
    pub fn is_organisers(&self) -> bool {
        matches!(self.place, Place::Stored(_))
    }

    /// Whether [`Self::ready`] answers at once: it is in memory, compiled or known not to compile.
    pub fn is_in_memory(&self) -> bool {
        self.press.shared.cache.knows(&self.key)
    }

    /// The template, ready to print.
    pub async fn ready(self) -> Result<Arc<Ready>, Error> {
        let Self { press, event, place, revision, key } = self;
        let cache = &press.shared.cache;
        cache.get(&key, press.make(event, place, &revision, &key)).await
    }
}

impl Press {
    /// A press; `default` is the template of events that chose none.
    pub fn new(store: Store, compiler: Arc<dyn Compiler>, default: TemplateFiles) -> Self {
        let default = Source { hash: default.hash(), files: default };
        let design_hashes = compiler.designs().iter().map(|design| design.files.hash()).collect();
        let (cache, gate) = (Cache::default(), Gate::new(Share::default()));
        let room = Arc::new(Semaphore::new(ROOM / PIECE));
        let proven = Arc::default();
        let shared = Shared { store, compiler, default, design_hashes, cache, gate, proven, room };
        Self { shared: Arc::new(shared) }
    }

    /// The press with other shares of owners at the compiler. To be called before it is cloned.
    #[must_use]
    pub fn sharing(mut self, share: Share) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.gate = Gate::new(share);
        }
        self
    }

    /// The compiler.
    pub fn compiler(&self) -> &dyn Compiler {
        &*self.shared.compiler
    }

    /// The designs that ship.
    pub fn designs(&self) -> &[Design] {
        self.shared.compiler.designs()
    }

    /// The design of this name.
    pub fn design(&self, name: &str) -> Option<&Design> {
        self.designs().iter().find(|design| design.name == name)
    }

    /// The files of the default template.
    pub fn default_files(&self) -> &TemplateFiles {
        &self.shared.default.files
    }

    /// The revision that the event's tickets are made with now; part of their fingerprint.
    pub async fn revision_of(&self, event: &Event) -> Result<String, Error> {
        let (_, hash) = self.locate(event).await?;
        Ok(self.revision(&hash))
    }

    /// The event's template, ready to print.
    pub async fn ready(&self, event: &Event) -> Result<Arc<Ready>, Error> {
        self.find(event).await?.ready().await
    }

    /// Finds the event's template, without compiling it.
    pub async fn find<'a>(&'a self, event: &'a Event) -> Result<Found<'a>, Error> {
        let (place, hash) = self.locate(event).await?;
        let revision = self.revision(&hash);
        let key = key(&revision, event);
        Ok(Found { press: self, event, place, revision, key })
    }

    /// Reads the event's template from the store, or else compiles it.
    async fn make(
        &self,
        event: &Event,
        place: Place,
        revision: &str,
        key: &str,
    ) -> Result<Ready, Error> {
        let owner = matches!(place, Place::Stored(_)).then(|| self.ownership(&event.owner, key));
        if let Some(kept) = self.kept(revision, key, owner.clone()).await? {
            return Ok(kept);
        }
        let files = self.files(place).await?;
        let turn = match &owner {
            Some(Ownership { owner, .. }) => Some(self.shared.gate.turn(owner).await),
            None => None,
        };
        let published = self.shared.compiler.compile(&files, event).await?;
        drop(turn);
        let store = &self.shared.store;
        let ready = read(revision, published.blob.clone(), owner)?;
        let keeping = store.keep_compiled_template(key, &published.blob, Timestamp::now());
        if let Err(error) = keeping.await {
            // Other processes have to compile it again.
            tracing::warn!(%error, event = %event.id, "could not store a compiled template");
        }
        Ok(ready)
    }

    /// What the templates of an owner share; `key` names the template.
    fn ownership(&self, owner: &str, key: &str) -> Ownership {
        let (gate, proven) = (Arc::clone(&self.shared.gate), Arc::clone(&self.shared.proven));
        Ownership { owner: owner.into(), gate, proven, key: key.into() }
    }

    /// Waits for so many bytes of memory; all of it at most.
    async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let pieces = bytes.div_ceil(PIECE).clamp(1, ROOM / PIECE);
        // The semaphore is never closed.
        Arc::clone(&self.shared.room).acquire_many_owned(pieces as u32).await.ok()
    }

    /// The PDF of a ticket. The memory of PDFs that are made at the same time has a limit: the value beside the PDF is to
    /// be held as long as the PDF is.
    pub async fn pdf(
        &self,
        ready: &Ready,
        document: &TicketDocument,
    ) -> Result<(Vec<u8>, Room), Error> {
        let Some(drawn) = ready.draw(document)? else {
            let pdf = ready.pdf_apart(self.compiler(), document).await?;
            return Ok((pdf, Room { permit: None }));
        };
        let mut permit = self.room(drawn.memory).await;
        let pdf = drawn.write();
        // The rest was for the work.
        let kept = permit.as_mut().and_then(|all| {
            let pieces = pdf.len().div_ceil(PIECE).clamp(1, all.num_permits());
            all.split(pieces)
        });
        Ok((pdf, Room { permit: kept }))
    }

    /// The PDF of a ticket of a template that may bring its process down: made in another one.
    pub async fn pdf_apart(
        &self,
        ready: &Ready,
        document: &TicketDocument,
    ) -> Result<Vec<u8>, Error> {
        ready.pdf_apart(self.compiler(), document).await
    }

    /// Compiles files that are not kept, in a turn of the event's owner.
    pub async fn try_out(
        &self,
        files: &TemplateFiles,
        event: &Event,
    ) -> Result<(Published, Ready), Error> {
        let owner: Arc<str> = event.owner.as_str().into();
        let turn = self.shared.gate.turn(&owner).await;
        let published = compile_for_author(&*self.shared.compiler, files, event).await?;
        drop(turn);
        let revision = self.revision(&files.hash());
        // Named by nothing that is kept: what works as a preview is not proven for tickets.
        let ownership = Ownership { proven: Arc::default(), ..self.ownership(&owner, &revision) };
        let ready = read(&revision, published.blob.clone(), Some(ownership))?;
        Ok((published, ready))
    }

    /// A picture of a page of a PDF, as PNG, in a turn of this owner.
    pub async fn picture(
        &self,
        pdf: &[u8],
        picture: Picture,
        owner: &str,
    ) -> Result<Vec<u8>, Error> {
        let _turn = self.shared.gate.turn(&owner.into()).await;
        self.shared.compiler.picture(pdf, picture).await
    }

    /// The files of the event's template.
    pub async fn files_of(&self, event: &Event) -> Result<TemplateFiles, Error> {
        let (place, _) = self.locate(event).await?;
        self.files(place).await
    }

    /// The compiled template in the store, if there is one that can be read.
    async fn kept(
        &self,
        revision: &str,
        key: &str,
        owner: Option<Ownership>,
    ) -> Result<Option<Ready>, Error> {
        let Some(blob) = self.shared.store.compiled_template(key).await? else { return Ok(None) };
        match read(revision, blob, owner) {
            Ok(ready) => Ok(Some(ready)),
            Err(error) => {
                tracing::warn!(%error, key, "a compiled template in the store is damaged; compiling it again");
                Ok(None)
            }
        }
    }

    /// Where the files of the event's template are, and their hash.
    async fn locate(&self, event: &Event) -> Result<(Place, String), Error> {
        match &event.details.template {
            None => Ok((Place::Default, self.shared.default.hash.clone())),
            Some(TemplateChoice::Shipped(name)) => {
                let designs = self.designs();
                let found = designs.iter().position(|design| design.name == *name);
                let found = found.ok_or_else(|| {
                    Error::NoSuchTemplate(format!("no design is called {name:?} in this version"))
                })?;
                Ok((Place::Shipped(found), self.shared.design_hashes[found].clone()))
            }
            Some(choice @ TemplateChoice::Own { id, revision }) => {
                let found = self.shared.store.template_revision(*id, *revision).await?;
                let found = found.ok_or_else(|| gone(choice))?;
                // This revision, even if the next one is written meanwhile.
                let number = Some(found.number);
                let choice = TemplateChoice::Own { id: *id, revision: number };
                Ok((Place::Stored(choice), found.hash))
            }
        }
    }

    async fn files(&self, place: Place) -> Result<TemplateFiles, Error> {
        match place {
            Place::Default => Ok(self.shared.default.files.clone()),
            Place::Shipped(found) => Ok(self.designs()[found].files.clone()),
            Place::Stored(TemplateChoice::Shipped(name)) => {
                Err(Error::NoSuchTemplate(format!("the design {name} is not in the database")))
            }
            Place::Stored(choice @ TemplateChoice::Own { id, revision }) => {
                let found = self.shared.store.template_files(id, revision).await?;
                found.map(|(_, files)| files).ok_or_else(|| gone(&choice))
            }
        }
    }

    /// Names the files together with the version of the compiler.
    fn revision(&self, hash: &str) -> String {
        let mut revision = Sha256::new();
        revision.update(self.shared.compiler.version());
        revision.update([0]);
        revision.update(hash);
        hex::encode(&revision.finalize()[..16])
    }
}

/// Reads the output of the compiler; without an owner it is a template of ours.
fn read(revision: &str, blob: Vec<u8>, owner: Option<Ownership>) -> Result<Ready, Error> {
    match owner {
        Some(owner) => Ready::of_organiser(revision, blob, owner),
        None => Ready::new(revision, &blob),
    }
}

fn gone(choice: &TemplateChoice) -> Error {
    Error::NoSuchTemplate(match choice {
        TemplateChoice::Own { id, revision: Some(number) } => {
            format!("there is no revision {number} of template {id}")
        }
        TemplateChoice::Own { id, revision: None } => format!("there is no template {id}"),
        TemplateChoice::Shipped(name) => format!("there is no design {name:?}"),
    })
}

/// Names a template together with the fields of the event that it sees.
fn key(revision: &str, event: &Event) -> String {
    let mut seen = event.details.clone();
    seen.template = None;
    let mut key = Sha256::new();
    for part in [revision.as_bytes(), event.id.to_string().as_bytes()] {
        key.update(part);
        key.update([0]);
    }
    // Serialising plain data cannot fail, and its field order is fixed.
    key.update(serde_json::to_vec(&seen).unwrap_or_default());
    hex::encode(key.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_key_follows_what_the_template_sees_of_the_event() {
        let event = sample::event();
        let same = Event { updated_at: Timestamp::MAX, ..event.clone() };
        assert_eq!(key("r", &event), key("r", &same));
        assert_ne!(key("r", &event), key("s", &event));
        let mut other = event.clone();
        other.details.location.push('!');
        assert_ne!(key("r", &event), key("r", &other));
    }
}
