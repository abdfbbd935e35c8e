//! Where Redis is, as people write it in `REDIS_URL`.
//!
//! | form | means |
//! |---|---|
//! | `redis://[user:password@]host:port[/database]` | one server |
//! | `rediss://…` | one server, over TLS |
//! | `unix:///path[?db=1&user=u&pass=p]` | one server on this machine |
//! | `redis-sentinel://[user:password@]host:port,host:port/name[/database]` | the master that these Sentinels know by that name; `?sentinel_user=…&sentinel_password=…` if they ask for it |
//! | `rediss-sentinel://…` | the same, over TLS; `?sentinel_tls=no` if only the master has it |
//! | `redis-cluster://[user:password@]host:port,host:port` | a Cluster, some of its nodes |
//! | `rediss-cluster://…` | a Cluster, over TLS |

use url::Url;

use crate::Error;

/// Most hosts in one address; more would be a mistake.
const MAX_HOSTS: usize = 64;

/// The remedy when a host or a path contains an `@`: the password was cut at a special sign.
const ENCODE: &str = "signs such as / ? # @ in a password must be percent-encoded";

/// A Redis, one or many servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// One server; the URL is one that the `redis` crate reads.
    Single { url: String },
    /// A master and its replicas, watched by Sentinels.
    Sentinel(SentinelAddress),
    /// A Cluster; the URLs of some of its nodes.
    Cluster { nodes: Vec<String> },
}

/// How to find a master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentinelAddress {
    /// URLs of the Sentinels.
    pub(crate) sentinels: Vec<String>,
    /// The name by which they know the master.
    pub(crate) master: String,
    /// For the master itself: user, password, database, percent-encoded.
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) database: u32,
    /// Whether the master wants TLS.
    pub(crate) master_tls: bool,
}

/// Checks an address as `REDIS_URL` has it, without connecting.
pub fn check_url(url: &str) -> Result<(), Error> {
    Address::parse(url).map(drop)
}

impl Address {
    /// Reads an address.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        parse(url).map_err(|reason| Error::InvalidUrl { url: without_password(url), reason })
    }
}

fn parse(text: &str) -> Result<Address, String> {
    let (scheme, rest) = text.split_once("://").ok_or("it has no scheme")?;
    match scheme {
        "redis" | "rediss" | "unix" | "redis+unix" => {
            if scheme.starts_with("redis") && !scheme.contains('+') {
                let url = Url::parse(text).map_err(|error| error.to_string())?;
                url.host_str().filter(|host| !host.is_empty()).ok_or("it has no host")?;
                if url.path().contains('@') || text.contains(['?', '#']) && text.contains('@') {
                    return Err(ENCODE.into());
                }
            }
            Ok(Address::Single { url: text.to_owned() })
        }
        "redis-cluster" | "rediss-cluster" => {
            let parts = Parts::of(rest)?;
            if parts.path.chars().any(|c| c != '/' && c != '0') {
                return Err("a Cluster has only database 0".into());
            }
            let scheme = scheme.trim_end_matches("-cluster");
            let nodes = parts.hosts.iter().map(|host| format!("{scheme}://{}{host}", parts.login));
            Ok(Address::Cluster { nodes: nodes.collect() })
        }
        "redis-sentinel" | "rediss-sentinel" => {
            sentinel(&Parts::of(rest)?, scheme == "rediss-sentinel").map(Address::Sentinel)
        }
        _ => Err(format!("{scheme}:// is not known")),
    }
}

fn sentinel(parts: &Parts<'_>, tls: bool) -> Result<SentinelAddress, String> {
    let mut path = parts.path.trim_matches('/').split('/');
    let master = path.next().filter(|name| !name.is_empty()).ok_or(
        "the name of the master is missing: redis-sentinel://host:26379,host:26379/mymaster",
    )?;
    let database = path.next().unwrap_or("0");
    let database =
        database.parse().map_err(|_| format!("{database:?} is not the number of a database"))?;
    if path.next().is_some() {
        return Err("there is something behind the number of the database".into());
    }
    let mut login = (String::new(), String::new());
    let mut sentinel_tls = tls;
    for (key, value) in parts.query.split('&').filter_map(|pair| pair.split_once('=')) {
        match key {
            "sentinel_user" => login.0 = value.to_owned(),
            "sentinel_password" => login.1 = value.to_owned(),
            "sentinel_tls" if tls => {
                sentinel_tls = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(format!("sentinel_tls is {value:?}, and not yes or no")),
                }
            }
            _ => return Err(format!("{key} is not known")),
        }
    }
    let login = match login {
        (user, password) if user.is_empty() && password.is_empty() => String::new(),
        (user, password) => format!("{user}:{password}@"),
    };
    let (user, password) =
        parts.login.trim_end_matches('@').split_once(':').unwrap_or((parts.login, ""));
    let scheme = if sentinel_tls { "rediss" } else { "redis" };
    Ok(SentinelAddress {
        sentinels: parts.hosts.iter().map(|host| format!("{scheme}://{login}{host}")).collect(),
        master: master.to_owned(),
        user: user.trim_end_matches('@').to_owned(),
        password: password.to_owned(),
        database,
        master_tls: tls,
    })
}

/// The pieces of an address with several hosts, which `Url` does not read.
struct Parts<'a> {
    /// `user:password@`, or nothing.
    login: &'a str,
    hosts: Vec<&'a str>,
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(rest: &'a str) -> Result<Self, String> {
        if rest.rfind('@') > rest.find(['/', '?', '#']) && rest.contains(['/', '?', '#']) {
            return Err(ENCODE.to_owned());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let hosts: Vec<&str> = hosts.split(',').map(str::trim).collect();
        if hosts.len() > MAX_HOSTS {
            return Err(format!("it has more than {MAX_HOSTS} hosts"));
        }
        for host in &hosts {
            let url = Url::parse(&format!("redis://{login}{host}"));
            let sound = url.is_ok_and(|url| url.host_str().is_some() && url.port().is_some());
            if !sound {
                return Err(format!("{host:?} is not host:port"));
            }
        }
        Ok(Self { login, hosts, path, query })
    }
}

/// The URL as it may be shown in messages and logs. A password may hold signs that end it for one reader
/// and not for another (`/`, `?`, `#`, `@`), so everything up to the last `@` is taken for secret.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "(unreadable URL)".to_owned() };
    let (login, rest) = match rest.rsplit_once('@') {
        None => ("", rest),
        // Only a name that cannot be part of a password is shown.
        Some((login, rest)) => match login.split_once(':') {
            Some((user, _)) if user.bytes().all(|b| b.is_ascii_alphanumeric()) => (user, rest),
            _ => ("…", rest),
        },
    };
    // Unix sockets and Sentinels take passwords as parameters.
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    match login {
        "" if !url.contains('@') => format!("{scheme}://{rest}"),
        user => format!("{scheme}://{user}:***@{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_all_kinds_are_read() {
        for url in ["redis://h:1", "rediss://u:p@h:1/2", "unix:///run/redis.sock?db=1"] {
            assert_eq!(parse(url), Ok(Address::Single { url: url.to_owned() }));
        }
        let Ok(Address::Cluster { nodes }) = parse("rediss-cluster://u:p%40@a:7000,b:7001/") else {
            panic!("not a Cluster")
        };
        assert_eq!(nodes, ["rediss://u:p%40@a:7000", "rediss://u:p%40@b:7001"]);
        let url = "redis-sentinel://u:p@a:1,[::1]:2/main/3?sentinel_password=s";
        let Ok(Address::Sentinel(found)) = parse(url) else { panic!("no Sentinels") };
        assert_eq!(found.sentinels, ["redis://:s@a:1", "redis://:s@[::1]:2"]);
        assert_eq!((found.master.as_str(), found.database), ("main", 3));
        assert_eq!((found.user.as_str(), found.password.as_str()), ("u", "p"));
        assert!(!found.master_tls);
        for (url, sentinel) in [
            ("rediss-sentinel://a:1/main", "rediss://a:1"),
            ("rediss-sentinel://a:1/main?sentinel_tls=no", "redis://a:1"),
        ] {
            let Ok(Address::Sentinel(found)) = parse(url) else { panic!("no Sentinels") };
            assert_eq!((found.sentinels, found.master_tls), (vec![sentinel.to_owned()], true));
        }
    }

    #[test]
    fn a_mistake_is_named() {
        for (url, part) in [
            ("host:6379", "no scheme"),
            ("http://host", "http:// is not known"),
            ("redis://", "it has no host"),
            ("redis-cluster://a,b:1", "\"a\" is not host:port"),
            ("redis-cluster://a:1/4", "only database 0"),
            ("redis-sentinel://a:1", "the name of the master is missing"),
            ("redis-sentinel://a:1/m/x", "\"x\" is not the number"),
            ("redis-sentinel://a:1/m?x=y", "x is not known"),
            ("redis-sentinel://a:1/m?sentinel_tls=no", "sentinel_tls is not known"),
            ("rediss-sentinel://a:1/m?sentinel_tls=1", "sentinel_tls is \"1\", and not yes or no"),
        ] {
            let error = check_url(url).unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn passwords_are_never_shown() {
        assert_eq!(without_password("redis://u:secret@h:1/2"), "redis://u:***@h:1/2");
        for url in [
            "unix:///run/redis.sock?pass=secret",
            "::secret::",
            "redis-cluster://u:secret@a:1,b:2",
            "redis-sentinel://u:secret@a:1/m?sentinel_password=secret",
            "redis://u:se@secret@h:1",
            "redis://:se/secret@h:6379",
            "redis://u:secret?x@h:6379/1",
            "redis://u:secret#x@h:6379",
            "redis-cluster://u:se/secret@a:1",
            "redis-cluster://u:secret/x@a:1",
            "redis-sentinel://u:secret?x@a:1/m",
            "redis://user:12/secret@h",
        ] {
            assert!(!without_password(url).contains("secret"), "{url}");
            if let Err(error) = check_url(url) {
                assert!(!error.to_string().contains("secret"), "{error}");
            }
        }
    }
}
