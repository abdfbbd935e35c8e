//! From texts to values. An error says what would be right.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

type Parsed<T> = Result<T, String>;

/// Any text.
pub(super) fn text(text: &str) -> Parsed<String> {
    Ok(text.to_owned())
}

/// A file or folder, which need not exist.
pub(super) fn path(text: &str) -> Parsed<PathBuf> {
    Ok(PathBuf::from(text))
}

/// A Typst file that can be read now.
pub(super) fn readable_file(text: &str) -> Parsed<PathBuf> {
    match std::fs::File::open(text) {
        Ok(_) => Ok(PathBuf::from(text)),
        Err(error) => Err(format!("must be a Typst file that can be read: {error}")),
    }
}

/// `true` or `false`.
pub(super) fn switch(text: &str) -> Parsed<bool> {
    text.parse().map_err(|_| "must be true or false".to_owned())
}

/// A whole number within bounds.
pub(super) fn whole<T: TryFrom<u64>>(text: &str, bounds: RangeInclusive<u64>) -> Parsed<T> {
    let number = text.parse::<u64>().ok().filter(|number| bounds.contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        format!("must be a whole number from {} to {}", bounds.start(), bounds.end())
    })
}

/// A number from 0 to `max`, with or without decimals.
pub(super) fn fraction(text: &str, max: f64) -> Parsed<f64> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0 && *n <= max);
    number.ok_or_else(|| format!("must be a number from 0 to {max}"))
}

/// A whole number of seconds within bounds.
pub(super) fn seconds(text: &str, bounds: RangeInclusive<u64>) -> Parsed<Duration> {
    whole(text, bounds).map(Duration::from_secs)
}

/// A whole number of milliseconds within bounds.
pub(super) fn milliseconds(text: &str, bounds: RangeInclusive<u64>) -> Parsed<Duration> {
    whole(text, bounds).map(Duration::from_millis)
}

/// One of several words; upper case is accepted.
pub(super) fn choice<T: Copy>(text: &str, known: &[(&str, T)]) -> Parsed<T> {
    let found = known.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let (last, others) = words.split_last().unwrap_or((&"", &[]));
        format!("must be {} or {last}", others.join(", "))
    })
}

/// The address of a database that Stampede supports.
pub(super) fn database_url(text: &str) -> Parsed<String> {
    let known = ["sqlite:", "postgres://", "postgresql://"];
    if known.iter().any(|scheme| text.starts_with(scheme) && text.len() > scheme.len()) {
        return Ok(text.to_owned());
    }
    Err("must be sqlite:PATH or postgres://user:password@host:5432/database".to_owned())
}

/// An address to listen on.
pub(super) fn host(text: &str) -> Parsed<IpAddr> {
    let text = if text == "localhost" { "127.0.0.1" } else { text };
    text.parse().map_err(|_| {
        "must be an address of this machine such as 127.0.0.1 or 0.0.0.0 (all)".to_owned()
    })
}

/// An address and a port to listen on.
pub(super) fn socket(text: &str) -> Parsed<SocketAddr> {
    let address = text.replacen("localhost:", "127.0.0.1:", 1).parse::<SocketAddr>().ok();
    address.filter(|address| address.port() > 0).ok_or_else(|| {
        "must be an address of this machine and a port such as 127.0.0.1:9464".to_owned()
    })
}

/// The name of a node: it is part of Redis keys and channels.
pub(super) fn node_name(text: &str) -> Parsed<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text == "all" {
        return Err("means all nodes in commands; choose another name".to_owned());
    }
    if text.len() <= 63 && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err("must be at most 63 letters, digits, '-', '_' or '.'".to_owned())
}
