//! GET, SET and LPUSH with redis-benchmark, one command and sixteen at a time on each connection.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use super::servers::Server;
use super::wire::Address;

/// Commands at a time → requests for each job of the other measurements.
const DEPTHS: [(u32, u32); 2] = [(1, 6), (16, 30)];

/// `SET P1` → requests a second; empty if redis-benchmark is not installed.
pub(super) async fn measure(server: &Server, jobs: u32) -> Result<BTreeMap<String, f64>> {
    let mut found = BTreeMap::new();
    for (depth, for_each_job) in DEPTHS {
        let requests = for_each_job * jobs;
        let mut command = Command::new("redis-benchmark");
        match server.address() {
            Address::Tcp(port) => command.args(["-h", "127.0.0.1", "-p", &port.to_string()]),
            Address::Unix(path) => command.arg("-s").arg(path),
        };
        command.args(["-t", "set,get,lpush", "-c", "50", "--csv"]);
        command.args(["-n", &requests.to_string(), "-P", &depth.to_string()]);
        let output = match command.output().await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
            output => output.context("redis-benchmark")?,
        };
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("redis-benchmark against {} failed: {error}{text}", server.kind().name());
        }
        let rows: Vec<(String, f64)> = text.lines().filter_map(row).collect();
        if rows.len() != 3 {
            bail!("redis-benchmark against {} says: {text}", server.kind().name());
        }
        found.extend(rows.into_iter().map(|(name, rate)| (format!("{name} P{depth}"), rate)));
    }
    Ok(found)
}

/// `"SET","98765.43",…`
fn row(line: &str) -> Option<(String, f64)> {
    let mut cells = line.split(',').map(|cell| cell.trim_matches('"'));
    Some((cells.next()?.to_owned(), cells.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_figures_are_read_and_the_head_is_not() {
        assert_eq!(row(r#""test","rps","avg_latency_ms""#), None);
        assert_eq!(row(r#""GET","98765.43","0.2""#), Some(("GET".to_owned(), 98765.43)));
    }
}
