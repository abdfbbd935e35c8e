//! What the person at the terminal is told when a node runs.

use std::net::{IpAddr, SocketAddr};

use rustix::system::uname;

use crate::admin_key::AdminKey;
use crate::commands::myself;
use crate::settings::Settings;

/// Tells where to look, and how to get in.
pub(super) fn greet(settings: &Settings, admin_key: AdminKey, address: SocketAddr) {
    let myself = myself();
    let key = match admin_key {
        AdminKey::New(key) => format!("{key}\n              (shown only now: keep it)"),
        AdminKey::Preset => "the one in ADMIN_KEY".to_owned(),
        AdminKey::Known => {
            format!("shown at the first start; for a new one: {myself} token create --role admin")
        }
    };
    let host = uname().nodename().to_string_lossy().into_owned();
    let [first, others @ ..] = &open_at(address, &host)[..] else { return };
    println!();
    println!("  Stampede {} is running", env!("CARGO_PKG_VERSION"));
    println!("  API         {first}/api   (health: {first}/health)");
    for other in others {
        println!("              {other}/api from other machines");
    }
    println!("  Admin key   {key}");
    println!("  Workers     {}", workers(settings));
    if let Some(address) = settings.metrics_listen {
        println!("  Metrics     http://{address}/metrics   (needs no key)");
    }
    println!("  PDFs        {}", settings.public_path.join("tickets").display());
    // A command looks where the server is by default.
    let port = match address.port() {
        3000 => String::new(),
        port => format!("PORT={port} "),
    };
    println!("  Try         {port}{myself} demo --tickets 200");
    println!();
}

/// One line for a node that serves nobody but those who ask how it is.
pub(super) fn greet_worker(settings: &Settings, health: Option<SocketAddr>) {
    let health = match health {
        Some(address) => {
            let host = uname().nodename().to_string_lossy().into_owned();
            let urls = open_at(address, &host);
            format!("health: {}/health", urls.last().map_or("", String::as_str))
        }
        None => "no health page (set PORT for one)".to_owned(),
    };
    println!(
        "Stampede {} works as node {}: {}; {health}; stop with Ctrl-C or SIGTERM",
        env!("CARGO_PKG_VERSION"),
        settings.server_name,
        workers(settings),
    );
}

fn workers(settings: &Settings) -> String {
    let fleet = &settings.fleet;
    let processes = if fleet.count == 1 { "process" } else { "processes" };
    let range = match (fleet.min, fleet.max) {
        (min, max) if min == max => String::new(),
        (min, max) => format!(" ({min} to {max} with the load)"),
    };
    match fleet.max {
        0 => "none on this node: others make the tickets".to_owned(),
        _ => format!(
            "{} {processes}{range}, {} jobs at a time each",
            fleet.count, settings.job_concurrency
        ),
    }
}

/// The addresses one can open in a browser: `0.0.0.0` means all of this machine's, and is none.
fn open_at(address: SocketAddr, host: &str) -> Vec<String> {
    let url = |ip: IpAddr| format!("http://{}", SocketAddr::new(ip, address.port()));
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => {
            vec![url(IpAddr::from([127, 0, 0, 1])), format!("http://{host}:{}", address.port())]
        }
        // On Linux it takes IPv4, too.
        IpAddr::V6(ip) if ip.is_unspecified() => {
            vec![
                format!("http://localhost:{}", address.port()),
                format!("http://{host}:{}", address.port()),
            ]
        }
        ip => vec![url(ip)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_such_that_a_browser_can_open_them() {
        for (address, wanted) in [
            ("127.0.0.1:3000", &["http://127.0.0.1:3000"][..]),
            ("[::1]:3000", &["http://[::1]:3000"]),
            ("10.0.0.7:80", &["http://10.0.0.7:80"]),
            ("0.0.0.0:3000", &["http://127.0.0.1:3000", "http://box:3000"]),
            ("[::]:3000", &["http://localhost:3000", "http://box:3000"]),
        ] {
            assert_eq!(open_at(address.parse().unwrap(), "box"), wanted, "{address}");
        }
    }
}
