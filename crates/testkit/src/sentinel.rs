//! A real Redis Sentinel that watches one master.

use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::guarded::{Guarded, free_port, require};
use crate::redis::find_program;
use crate::temp_dir;

/// A Sentinel on a free loopback port; it alone decides when the master is down, within a second.
#[derive(Debug)]
pub struct Sentinel {
    // Declared before the folder: the server must be gone when the folder is removed.
    _server: Guarded,
    port: u16,
    _folder: TempDir,
}

impl Sentinel {
    /// Watches the master at `port` of this machine, under a name.
    pub async fn watching(name: &str, master: u16) -> Self {
        Self::with_config(name, master, &[]).await
    }

    /// The same with more lines in its `sentinel.conf`.
    pub async fn with_config(name: &str, master: u16, lines: &[String]) -> Self {
        let program = require(find_program(), "redis-server", "redis-server");
        let folder = temp_dir();
        let port = free_port();
        let lines = lines.join("\n");
        let config = format!(
            "port {port}\nbind 127.0.0.1\nprotected-mode no\n\
             sentinel monitor {name} 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds {name} 500\n\
             sentinel failover-timeout {name} 2000\n{lines}\n"
        );
        let file = folder.path().join("sentinel.conf");
        std::fs::write(&file, config)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        let command =
            [program.display().to_string(), file.display().to_string(), "--sentinel".to_owned()];
        let mut server = Guarded::spawn(folder.path(), Signal::KILL, &command);
        let answers = |_| async move {
            let connecting = TcpStream::connect(("127.0.0.1", port));
            match timeout(Duration::from_secs(5), connecting).await {
                Ok(Ok(_)) => Ok(()),
                _ => Err("the Sentinel does not answer".to_owned()),
            }
        };
        if let Err(log) = server.ready(answers).await {
            panic!("the Sentinel does not start: {log}");
        }
        Self { _server: server, port, _folder: folder }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }
}
