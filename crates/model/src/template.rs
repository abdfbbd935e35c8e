//! Templates: which one an event's tickets are made with, and the files an organiser's own consists of.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::{TemplateId, Timestamp};

/// The file every template has; the others are what it includes.
pub const MAIN_FILE: &str = "template.typ";

/// Which template an event's tickets are made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateChoice {
    /// A design that ships with Stampede, by its name.
    Shipped(String),
    /// An organiser's own.
    Own {
        /// The template.
        id: TemplateId,
        /// The revision it is pinned to; `None` follows the latest.
        revision: Option<u32>,
    },
}

impl Serialize for TemplateChoice {
    /// `{"id": "a4"}`, or `{"id": "…", "revision": 3}` with `"latest"` for one that is not pinned.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = match self {
            Self::Shipped(name) => serde_json::json!({ "id": name }),
            Self::Own { id, revision: Some(number) } => {
                serde_json::json!({ "id": id, "revision": number })
            }
            Self::Own { id, revision: None } => {
                serde_json::json!({ "id": id, "revision": "latest" })
            }
        };
        value.serialize(serializer)
    }
}

/// An organiser's template; its files are in its revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// Names the template.
    pub id: TemplateId,
    /// The user it belongs to.
    pub owner: String,
    /// What its organiser calls it.
    pub name: String,
    /// Number of the latest revision; 1 for the first.
    pub revision: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// One state of a template. Never changed once written: tickets were made with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRevision {
    /// 1 for the first of its template.
    #[serde(rename = "revision")]
    pub number: u32,
    /// [`TemplateFiles::hash`] of its files.
    pub hash: String,
    /// Bytes in its files.
    pub size: u64,
    /// The user who wrote it.
    pub author: String,
    /// What the author says about it.
    pub note: String,
    /// When it was written.
    pub created_at: Timestamp,
}

/// Why files cannot be a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// There is nothing to begin with.
    #[error("there must be a file {MAIN_FILE}")]
    NoMainFile,
    /// More files than anybody needs.
    #[error("may be at most {max} files, are {0}", max = TemplateFiles::MAX_FILES)]
    TooMany(usize),
    /// Together too large.
    #[error("may have at most {max} bytes together, have {0}", max = TemplateFiles::MAX_BYTES)]
    TooLarge(u64),
    /// A name that would not be the same file everywhere.
    #[error(
        "the name {0:?} cannot be used: parts separated by \"/\", none empty or beginning with a \
         dot, at most {max} characters, without control characters and \\ : * ? \" < > |",
        max = TemplateFiles::MAX_NAME
    )]
    Name(String),
}

/// The files of a template: what is in it, in a fixed order, within limits.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TemplateFiles(BTreeMap<String, Vec<u8>>);

impl TemplateFiles {
    /// Files at most.
    pub const MAX_FILES: usize = 100;
    /// Bytes of all files together.
    pub const MAX_BYTES: u64 = 8 << 20;
    /// Characters of a name.
    pub const MAX_NAME: usize = 100;

    /// Checks names, number and sizes; what is inside only a compiler can tell.
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, FilesError> {
        if files.len() > Self::MAX_FILES {
            return Err(FilesError::TooMany(files.len()));
        }
        if let Some(name) = files.keys().find(|name| !is_name(name)) {
            return Err(FilesError::Name(name.chars().take(Self::MAX_NAME).collect()));
        }
        let size = files.values().map(|bytes| bytes.len() as u64).sum();
        if size > Self::MAX_BYTES {
            return Err(FilesError::TooLarge(size));
        }
        if !files.contains_key(MAIN_FILE) {
            return Err(FilesError::NoMainFile);
        }
        Ok(Self(files))
    }

    /// Name and content of each file, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// One file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Bytes of all files together.
    pub fn size(&self) -> u64 {
        self.0.values().map(|bytes| bytes.len() as u64).sum()
    }

    /// SHA-256 over names and contents, as hexadecimal text: equal hashes mean equal files.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for (name, bytes) in &self.0 {
            for part in [name.as_bytes(), bytes] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        hex::encode(hash.finalize())
    }

    /// The files as a map.
    pub fn into_map(self) -> BTreeMap<String, Vec<u8>> {
        self.0
    }
}

impl fmt::Debug for TemplateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.0.iter().map(|(name, bytes)| (name, bytes.len()));
        f.debug_map().entries(sizes).finish()
    }
}

/// A relative path that names the same file on every system.
fn is_name(name: &str) -> bool {
    let fits = |c: char| !c.is_control() && !"\\:*?\"<>|".contains(c);
    name.chars().count() <= TemplateFiles::MAX_NAME
        && name.chars().all(fits)
        && name
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(['.', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &[u8])]) -> Result<TemplateFiles, FilesError> {
        TemplateFiles::new(
            list.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect(),
        )
    }

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        for name in
            ["", "/etc/passwd", "../x", "a/../b", "a//b", ".git", "a\\b", "c:x", "x\0", "a/", "x."]
        {
            let refused = files(&[(MAIN_FILE, b""), (name, b"")]);
            assert_eq!(refused, Err(FilesError::Name(name.to_owned())), "{name:?}");
        }
        assert!(files(&[(MAIN_FILE, b""), ("img/Лого 2.png", b"")]).is_ok());
    }

    #[test]
    fn there_are_limits_and_a_main_file() {
        assert_eq!(files(&[("logo.png", b"")]), Err(FilesError::NoMainFile));
        let large = vec![0; (8 << 20) + 1];
        assert_eq!(files(&[(MAIN_FILE, &large)]), Err(FilesError::TooLarge((8 << 20) + 1)));
        let names: Vec<String> = (0..101).map(|n| format!("{n}.typ")).collect();
        let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
        assert_eq!(files(&many), Err(FilesError::TooMany(101)));
    }

    #[test]
    fn the_hash_tells_where_one_file_ends_and_the_next_begins() {
        let hash = |list: &[(&str, &[u8])]| files(list).unwrap().hash();
        let one = hash(&[(MAIN_FILE, b"ab"), ("x", b"c")]);
        assert_eq!(one, hash(&[("x", b"c"), (MAIN_FILE, b"ab")]));
        assert_ne!(one, hash(&[(MAIN_FILE, b"a"), ("x", b"bc")]));
        assert_ne!(one, hash(&[(MAIN_FILE, b"ab"), ("y", b"c")]));
        assert_eq!(one.len(), 64);
    }

    #[test]
    fn a_choice_says_whether_it_follows_the_latest_revision() {
        let json = |choice: TemplateChoice| serde_json::to_value(choice).unwrap();
        let id = TemplateId::generate();
        assert_eq!(json(TemplateChoice::Shipped("a4".into())), serde_json::json!({ "id": "a4" }));
        assert_eq!(
            json(TemplateChoice::Own { id, revision: None }),
            serde_json::json!({ "id": id, "revision": "latest" })
        );
        assert_eq!(
            json(TemplateChoice::Own { id, revision: Some(3) }),
            serde_json::json!({ "id": id, "revision": 3 })
        );
    }
}
