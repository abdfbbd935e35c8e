//! Which Redis to use, and the certificates for TLS: `REDIS_URL`, or its parts, or none.

use stampede_broker::TlsFiles;
use url::Url;

use super::reader::Reader;
use super::table::Values;

/// The Redis of the queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redis {
    /// A Redis or Valkey at this address.
    At(String),
    /// The embedded engine, with its journal in the data directory.
    Embedded,
}

/// Reads `REDIS_URL`.
pub(super) fn parse_url(text: &str) -> Result<String, String> {
    match stampede_broker::check_url(text) {
        Ok(()) => Ok(text.to_owned()),
        // The mistake shows the value already.
        Err(stampede_broker::Error::InvalidUrl { reason, .. }) => Err(format!(
            "is not a Redis URL: {reason}. Write redis://[user:password@]host:port[/database], \
             rediss://…, unix:///path, redis-sentinel://host:port,host:port/name or \
             redis-cluster://host:port,host:port"
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// The Redis of the settings.
pub(super) fn read_redis(reader: &mut Reader<'_>, values: &Values) -> Redis {
    if let Some(url) = &values.redis_url {
        return Redis::At(url.clone());
    }
    let parts = ["REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD", "REDIS_DB"];
    if !parts.iter().any(|name| reader.is_given(name)) {
        return Redis::Embedded;
    }
    let host = values.redis_host.as_deref().unwrap_or("127.0.0.1");
    let (port, database) = (values.redis_port, values.redis_db);
    let Ok(mut url) = Url::parse(&format!("redis://{host}:{port}/{database}")) else {
        reader.mistake("REDIS_HOST", host, "must be a host name or an address");
        return Redis::Embedded;
    };
    // A URL with a host accepts every password.
    let _ = url.set_password(values.redis_password.as_deref());
    Redis::At(url.to_string())
}

/// The certificates for `rediss://` and the other addresses with TLS.
pub(super) fn read_tls(reader: &mut Reader<'_>, values: &Values) -> TlsFiles {
    let own = match (&values.redis_tls_cert, &values.redis_tls_key) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        (Some(certificate), None) => {
            reader.mistake("REDIS_TLS_CERT", certificate.display(), "needs REDIS_TLS_KEY, too");
            None
        }
        (None, Some(key)) => {
            reader.mistake("REDIS_TLS_KEY", key.display(), "needs REDIS_TLS_CERT, too");
            None
        }
    };
    TlsFiles { authority: values.redis_tls_ca.clone(), own }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::super::given::Given;
    use super::*;

    #[test]
    fn redis_may_be_given_in_parts_and_its_password_is_encoded() {
        let environment = |name: &str| match name {
            "REDIS_HOST" => Some("cache".to_owned()),
            "REDIS_PASSWORD" => Some("p@ss/w".to_owned()),
            "REDIS_DB" => Some("2".to_owned()),
            _ => None,
        };
        let settings = Settings::resolve(&Given::default(), &environment).unwrap();
        assert_eq!(settings.redis, Redis::At("redis://:p%40ss%2Fw@cache:6379/2".into()));
    }

    #[test]
    fn the_parts_are_ignored_beside_a_url() {
        let given = Given::from([("REDIS_URL", "redis://cache")]);
        let environment =
            |name: &str| (name == "REDIS_PORT").then(|| "tcp://10.0.0.1:6379".to_owned());
        let settings = Settings::resolve(&given, &environment).unwrap();
        assert_eq!(settings.redis, Redis::At("redis://cache".into()));
    }

    #[test]
    fn a_certificate_and_its_key_need_each_other() {
        for (given, missing) in
            [("REDIS_TLS_CERT", "REDIS_TLS_KEY"), ("REDIS_TLS_KEY", "REDIS_TLS_CERT")]
        {
            let environment = |name: &str| (name == given).then(|| "/x.pem".to_owned());
            let mistakes = Settings::resolve(&Given::default(), &environment).unwrap_err();
            let wanted = format!("{given}=/x.pem: needs {missing}, too");
            assert_eq!(mistakes[0].to_string(), wanted);
        }
    }
}
