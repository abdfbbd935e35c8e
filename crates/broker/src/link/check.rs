//! The checks that a server must pass for jobs to be safe in it.

use crate::Error;

/// A field of an answer to `INFO`.
pub(crate) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

pub(crate) fn check_server(url: &str, info: &str) -> Result<(), Error> {
    let field = |name: &str| info_field(info, name);
    if let Some(version) = field("redis_version") {
        let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < (6, 2) {
            return Err(Error::TooOld { url: url.to_owned(), version: version.to_owned() });
        }
    }
    if field("loading") == Some("1") {
        return Err(Error::Loading { url: url.to_owned() });
    }
    if field("role") == Some("slave") && field("slave_read_only") == Some("1") {
        let part = |name| field(name).unwrap_or("?");
        let primary = format!("{}:{}", part("master_host"), part("master_port"));
        return Err(Error::ReadOnlyReplica { url: url.to_owned(), primary });
    }
    match field("maxmemory_policy") {
        Some("noeviction") | None => Ok(()),
        Some(policy) => {
            Err(Error::EvictionPolicy { url: url.to_owned(), policy: policy.to_owned() })
        }
    }
}

/// Refuses servers of another kind than the address says.
pub(super) fn check_kind(url: &str, info: &str, is_cluster: bool) -> Result<(), Error> {
    let field = |name: &str| info_field(info, name);
    let wrong = |what: &'static str, remedy: &'static str| {
        Err(Error::WrongKind { url: url.to_owned(), what, remedy })
    };
    // Valkey calls it `server_mode`.
    match (field("redis_mode").or_else(|| field("server_mode")), is_cluster) {
        (Some("sentinel"), _) => {
            wrong("a Sentinel", "write redis-sentinel://host:port,host:port/name-of-the-master")
        }
        (Some("cluster"), false) => {
            wrong("a node of a Cluster", "write redis-cluster://host:port,host:port")
        }
        (Some("standalone"), true) => {
            wrong("a server of its own, not a node of a Cluster", "write redis://host:port")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_another_kind_is_refused_whatever_it_calls_its_kind() {
        for field in ["redis_mode", "server_mode"] {
            let info = |kind: &str| format!("# Server\r\n{field}:{kind}\r\n");
            for (kind, is_cluster, remedy) in [
                ("sentinel", false, "redis-sentinel://"),
                ("cluster", false, "redis-cluster://"),
                ("standalone", true, "redis://host:port"),
            ] {
                let error = check_kind("redis://host", &info(kind), is_cluster).unwrap_err();
                assert!(error.to_string().contains(remedy), "{error}");
            }
            check_kind("", &info("standalone"), false).unwrap();
            check_kind("", &info("cluster"), true).unwrap();
        }
    }

    #[test]
    fn a_redis_that_may_drop_jobs_is_refused_with_the_remedy() {
        let info = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\n";
        let error = check_server("redis://host", info).unwrap_err().to_string();
        assert!(error.contains("allkeys-lru") && error.contains("CONFIG SET"), "{error}");
        check_server("", &info.replace("allkeys-lru", "noeviction")).unwrap();
        let loading = "redis_version:7.0.15\r\nloading:1\r\nmaxmemory_policy:noeviction\r\n";
        assert!(matches!(check_server("", loading), Err(Error::Loading { .. })));
        let replica = "role:slave\r\nslave_read_only:1\r\nmaster_host:db\r\nmaster_port:6379\r\n";
        let error = check_server("redis://host", replica).unwrap_err();
        assert!(error.to_string().contains("replica of db:6379") && error.is_outage(), "{error}");
        let old = "redis_version:5.0.9\r\nmaxmemory_policy:noeviction\r\n";
        assert!(matches!(check_server("", old), Err(Error::TooOld { .. })));
    }
}
