//! Finds the template of an event and compiles it, once for all processes.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use stampede_model::{Event, TemplateChoice, TemplateFiles, TicketDocument, Timestamp};
use stampede_store::Store;

use crate::cache::Cache;
use crate::{Compiler, Design, Error, Picture, Published, Ready, compile_for_author};

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

impl Press {
    /// A press; `default` is the template of events that chose none.
    pub fn new(store: Store, compiler: Arc<dyn Compiler>, default: TemplateFiles) -> Self {
        let default = Source { hash: default.hash(), files: default };
        let design_hashes = compiler.designs().iter().map(|design| design.files.hash()).collect();
        let cache = Cache::default();
        Self { shared: Arc::new(Shared { store, compiler, default, design_hashes, cache }) }
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
        let (place, hash) = self.locate(event).await?;
        let revision = self.revision(&hash);
        let key = key(&revision, event);
        let make = async {
            if let Some(kept) = self.kept(&revision, &key).await? {
                return Ok(kept);
            }
            let files = self.files(place).await?;
            let published = self.shared.compiler.compile(&files, event).await?;
            let ready = Ready::new(&revision, &published.blob)?;
            let store = &self.shared.store;
            let keeping = store.keep_compiled_template(&key, &published.blob, Timestamp::now());
            if let Err(error) = keeping.await {
                // Other processes have to compile it again.
                tracing::warn!(%error, event = %event.id, "could not store a compiled template");
            }
            Ok(ready)
        };
        self.shared.cache.get(&key, make).await
    }

    /// The PDF of a ticket.
    pub async fn pdf(&self, ready: &Ready, document: &TicketDocument) -> Result<Vec<u8>, Error> {
        ready.pdf(self.compiler(), document).await
    }

    /// Compiles files that are not kept.
    pub async fn try_out(
        &self,
        files: &TemplateFiles,
        event: &Event,
    ) -> Result<(Published, Ready), Error> {
        let published = compile_for_author(&*self.shared.compiler, files, event).await?;
        let ready = Ready::new(&self.revision(&files.hash()), &published.blob)?;
        Ok((published, ready))
    }

    /// A picture of a page of a PDF, as PNG.
    pub async fn picture(&self, pdf: &[u8], picture: Picture) -> Result<Vec<u8>, Error> {
        self.shared.compiler.picture(pdf, picture).await
    }

    /// The files of the event's template.
    pub async fn files_of(&self, event: &Event) -> Result<TemplateFiles, Error> {
        let (place, _) = self.locate(event).await?;
        self.files(place).await
    }

    /// The compiled template in the store, if there is one that can be read.
    async fn kept(&self, revision: &str, key: &str) -> Result<Option<Ready>, Error> {
        let Some(blob) = self.shared.store.compiled_template(key).await? else { return Ok(None) };
        match Ready::new(revision, &blob) {
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
