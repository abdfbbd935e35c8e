//! Which Redis to use: `REDIS_URL`, or its parts, or none; and how to speak with it.

use std::path::PathBuf;

use stampede_broker::TlsFiles;
use url::Url;

use super::reader::Reader;

/// Which Redis to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redis {
    /// One that somebody else runs.
    At(String),
    /// The embedded engine, with its journal in the data directory.
    Embedded,
}

pub(super) fn read_redis(reader: &mut Reader<'_>, url: Option<&str>) -> Redis {
    let url = reader.read("REDIS_URL", url, None, |value| {
        match stampede_broker::check_url(value) {
            Ok(()) => Ok(Some(value.to_owned())),
            // The value stands before the message already.
            Err(stampede_broker::Error::InvalidUrl { reason, .. }) => Err(format!(
                "is not a Redis URL: {reason}. Write redis://[user:password@]host:port[/database], \
                 rediss://…, unix:///path, redis-sentinel://host:port,host:port/name or \
                 redis-cluster://host:port,host:port"
            )),
            Err(error) => Err(error.to_string()),
        }
    });
    if let Some(url) = url {
        return Redis::At(url);
    }
    let parts = ["REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD", "REDIS_DB"]
        .map(|name| reader.variable(name));
    if parts.iter().all(Option::is_none) {
        return Redis::Embedded;
    }
    let [host, port, password, database] = parts;
    let port = reader.number("REDIS_PORT", port.as_deref(), 6379, 1..=65_535);
    let database = reader.number("REDIS_DB", database.as_deref(), 0, 0..=1_000_000);
    let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let Ok(mut url) = Url::parse(&format!("redis://{host}:{port}/{database}")) else {
        let right = "must be a host name or an address";
        reader.mistake("REDIS_HOST", host, right);
        return Redis::Embedded;
    };
    // A password cannot be refused by a URL that has a host.
    let _ = url.set_password(password.as_deref());
    Redis::At(url.to_string())
}

/// Certificates for `rediss://` and the like, where those that Mozilla trusts do not do.
pub(super) fn read_tls(reader: &mut Reader<'_>) -> TlsFiles {
    let file = |name: &str| reader.variable(name).map(PathBuf::from);
    let authority = file("REDIS_TLS_CA");
    let own = match (file("REDIS_TLS_CERT"), file("REDIS_TLS_KEY")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (certificate, _) => {
            let (given, missing) = if certificate.is_some() {
                ("REDIS_TLS_CERT", "REDIS_TLS_KEY")
            } else {
                ("REDIS_TLS_KEY", "REDIS_TLS_CERT")
            };
            reader.refuse(given, &format!("needs {missing}, too"));
            None
        }
    };
    TlsFiles { authority, own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_may_be_given_in_parts_and_its_password_is_encoded() {
        let environment = |name: &str| match name {
            "REDIS_HOST" => Some("cache".to_owned()),
            "REDIS_PASSWORD" => Some("p@ss/w".to_owned()),
            "REDIS_DB" => Some("2".to_owned()),
            _ => None,
        };
        let redis = read_redis(&mut Reader::new(&environment), None);
        assert_eq!(redis, Redis::At("redis://:p%40ss%2Fw@cache:6379/2".into()));
    }
}
