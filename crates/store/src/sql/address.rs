//! Reads a database address, and shows it without its secrets.

use std::path::{Path, PathBuf};

use sqlx::ConnectOptions;
use sqlx::any::AnyConnectOptions;
use url::Url;

use super::dialect::Dialect;
use crate::{Error, Result};

/// The address of a database.
pub(crate) struct Address {
    /// Which kind of database it is.
    pub(crate) dialect: Dialect,
    /// For the driver; may hold a password.
    pub(crate) options: AnyConnectOptions,
    /// For people: no password, no parameters.
    pub(crate) shown: String,
    /// The file, if there is one.
    pub(crate) file: Option<PathBuf>,
}

impl Address {
    /// Reads `sqlite:/path/to/file` (also written `sqlite:///path/to/file`) or `postgres://user:password@host:port/database`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Self::sqlite(text),
            Some("postgres" | "postgresql") => Self::postgres(text),
            // The text may be a password by mistake: it is not repeated.
            _ => Err(Error::unusable(
                "the address of the database is not understood; it must be like \
                 sqlite:/var/lib/stampede/stampede.db or postgres://user:password@host:5432/stampede",
            )),
        }
    }

    /// The rest of the address is a path and nothing else: no parameters, nothing is decoded.
    fn sqlite(text: &str) -> Result<Self> {
        let path = text.strip_prefix("sqlite://").or(text.strip_prefix("sqlite:")).unwrap_or(text);
        let file = PathBuf::from(path);
        if path == ":memory:" || path.ends_with('/') || file.file_name().is_none() {
            return Err(Error::unusable(format!(
                "the database address {text} names no file, but records must outlive the process; \
                 use one like sqlite:/var/lib/stampede/stampede.db"
            )));
        }
        Ok(Self {
            dialect: Dialect::Sqlite,
            options: options_for(&driver_url(path)?)?,
            shown: format!("sqlite:{path}"),
            file: Some(file),
        })
    }

    fn postgres(text: &str) -> Result<Self> {
        let url: Url = text.parse().map_err(|error| {
            Error::unusable(format!(
                "the address of the PostgreSQL database is wrong ({error}); it must be like \
                 postgres://user:password@host:5432/stampede, with special characters in the \
                 password written as %XX"
            ))
        })?;
        let mut shown = url.clone();
        // Neither fails for an address with a host; parameters may hold a password too.
        shown.set_password(None).ok();
        shown.set_query(None);
        shown.set_fragment(None);
        Ok(Self {
            dialect: Dialect::Postgres,
            options: options_for(&url)?,
            shown: shown.to_string(),
            file: None,
        })
    }

    /// The folder of the file, if there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.file.as_deref()?.parent().filter(|folder| !folder.as_os_str().is_empty())
    }
}

/// Writes a path as an address of the driver. Every character is percent-encoded, slashes too: so the
/// driver finds no parameters, special names or dots in it.
fn driver_url(path: &str) -> Result<Url> {
    let from_here = if path.starts_with('/') { "" } else { "./" };
    let hidden: String =
        from_here.bytes().chain(path.bytes()).map(|byte| format!("%{byte:02X}")).collect();
    Url::parse(&format!("sqlite:{hidden}?mode=rwc"))
        .map_err(|error| Error::unusable(format!("the database path {path} is wrong: {error}")))
}

fn options_for(url: &Url) -> Result<AnyConnectOptions> {
    AnyConnectOptions::from_url(url)
        // The driver logs every statement at debug level otherwise, holders' names included.
        .map(ConnectOptions::disable_statement_logging)
        .map_err(|error| Error::unusable(format!("the address of the database is wrong: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_never_show() {
        for (text, shown) in [
            ("postgres://ann:s3cret@db:5432/st?password=s3cret", "postgres://ann@db:5432/st"),
            ("postgresql://db/st", "postgresql://db/st"),
            ("sqlite:/var/x.db", "sqlite:/var/x.db"),
            ("sqlite:///var/a%20b.db?mode=rw", "sqlite:/var/a%20b.db?mode=rw"),
            ("sqlite:x.db", "sqlite:x.db"),
        ] {
            assert_eq!(Address::parse(text).map(|address| address.shown).unwrap(), shown);
        }
    }

    #[test]
    fn an_address_without_a_lasting_database_is_refused_with_an_example() {
        for text in [
            "",
            "s3cret",
            "mysql://x/y",
            "postgres://[s3cret",
            "sqlite::memory:",
            "sqlite:",
            "sqlite:/var/",
        ] {
            let Err(error) = Address::parse(text) else { panic!("{text} was accepted") };
            assert!(matches!(error, Error::Unusable(_)), "{error}");
            assert!(error.to_string().contains("like"), "{error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
