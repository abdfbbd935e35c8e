//! Where the embedded engine listens, and its password: `ENGINE_HOST`, `ENGINE_PORT`, `ENGINE_PASSWORD`.

use std::net::{IpAddr, Ipv4Addr};

use super::reader::Reader;
use super::redis::Redis;
use super::table::Values;

/// The address that the operator wants for the embedded engine.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EngineAddress {
    pub(crate) host: IpAddr,
    /// `None`: the port of the last start, or a free one at the first.
    pub(crate) port: Option<u16>,
    /// `None`: the password of the last start, or a random one at the first.
    pub(crate) password: Option<String>,
}

impl Default for EngineAddress {
    fn default() -> Self {
        Self { host: Ipv4Addr::LOCALHOST.into(), port: None, password: None }
    }
}

/// Reads the engine's address; one that other machines reach needs a password.
pub(super) fn read_engine(
    reader: &mut Reader<'_>,
    values: &Values,
    redis: &Redis,
) -> EngineAddress {
    let host = values.engine_host;
    if *redis == Redis::Embedded && !host.is_loopback() && values.engine_password.is_none() {
        reader.mistake(
            "ENGINE_HOST",
            host,
            "lets other machines reach the engine, who could read and change all jobs: set ENGINE_PASSWORD, \
             too, or listen on 127.0.0.1",
        );
    }
    let port = Some(values.engine_port).filter(|port| *port != 0);
    EngineAddress { host, port, password: values.engine_password.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::super::given::Given;
    use super::*;

    fn resolve(pairs: &[(&str, &str)]) -> Result<EngineAddress, String> {
        let environment = |name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        };
        Settings::resolve(&Given::default(), &environment)
            .map(|settings| settings.engine)
            .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_address_is_loopback_and_the_port_is_left_open() {
        assert!(resolve(&[]) == Ok(EngineAddress::default()));
        assert!(resolve(&[("ENGINE_PORT", "0")]) == Ok(EngineAddress::default()));
        let given = resolve(&[("ENGINE_HOST", "::1"), ("ENGINE_PORT", "7000")]).unwrap();
        assert_eq!((given.host.to_string().as_str(), given.port), ("::1", Some(7000)));
    }

    #[test]
    fn an_address_that_others_reach_needs_a_password() {
        for host in ["0.0.0.0", "::", "10.0.0.7"] {
            let refused = resolve(&[("ENGINE_HOST", host)]).map(drop).unwrap_err();
            assert!(refused.contains(&format!("ENGINE_HOST={host}: ")), "{refused}");
            assert!(refused.contains("set ENGINE_PASSWORD"), "{refused}");
            let given = resolve(&[("ENGINE_HOST", host), ("ENGINE_PASSWORD", " p%40 ")]).unwrap();
            assert_eq!(given.password.as_deref(), Some(" p%40 "));
        }
        // Kubernetes sets ENGINE_PORT for a service called engine. Beside a Redis it has no meaning.
        let beside = [
            ("REDIS_URL", "redis://cache"),
            ("ENGINE_HOST", "0.0.0.0"),
            ("ENGINE_PORT", "tcp://10.0.0.1:6379"),
        ];
        assert!(resolve(&beside).is_ok());
    }
}
