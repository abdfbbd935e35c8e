//! Public addresses of files.

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters of a name that are percent-encoded in a URL: all but the unreserved ones and the slash.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The address that the names of all files are appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicBase {
    /// A folder of this machine or of a network share.
    Folder(PathBuf),
    /// A URL: of a CDN, or of the bucket itself.
    Url(String),
}

impl PublicBase {
    /// The address of one file.
    pub(crate) fn join(&self, name: &str) -> Address {
        match self {
            Self::Folder(folder) => Address::Path(folder.join(name)),
            Self::Url(base) => {
                let name = utf8_percent_encode(name, ENCODED);
                Address::Url(format!("{}/{name}", base.trim_end_matches('/')))
            }
        }
    }
}

/// Where a file is, for people and for other programs. Shown as the path or the URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A path on this machine.
    Path(PathBuf),
    /// A URL.
    Url(String),
}

impl Address {
    /// The path of the file, if it is a file of this machine.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Url(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_base_and_the_name() {
        let folder = PublicBase::Folder("/var/public".into()).join("tickets/a.pdf");
        assert_eq!(folder.to_string(), "/var/public/tickets/a.pdf");
        assert_eq!(folder.path(), Some(Path::new("/var/public/tickets/a.pdf")));
        for base in ["https://cdn.example.com/t", "https://cdn.example.com/t/"] {
            let url = PublicBase::Url(base.into()).join("tickets/a b?%ü.pdf");
            let expected = "https://cdn.example.com/t/tickets/a%20b%3F%25%C3%BC.pdf";
            assert_eq!((url.to_string().as_str(), url.path()), (expected, None));
        }
    }
}
