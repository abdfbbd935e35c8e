//! nginx with a configuration that ships, on a free port and in front of servers under test.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::client::Client;
use crate::guarded::{Guarded, free_port, require};
use crate::temp_dir;

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    // Declared before the folder: the server must be gone when the folder is removed.
    _server: Guarded,
    port: u16,
    _folder: TempDir,
}

impl Nginx {
    /// Starts nginx with a configuration file in which some texts are replaced, such as the addresses
    /// of the servers behind it; `listen` is what stands there for the port to listen on.
    pub async fn start(config: &Path, listen: &str, replaced: &[(&str, String)]) -> Self {
        let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
        let program = program.iter().map(PathBuf::from).find(|path| path.is_file());
        let program = require(program, "nginx", "nginx-light");
        let folder = temp_dir();
        let port = free_port();
        let mut text = fs::read_to_string(config)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", config.display()));
        let listening = (listen, format!("listen 127.0.0.1:{port};"));
        for (old, new) in replaced.iter().chain([&listening]) {
            assert!(text.contains(old), "{old:?} is not in {}", config.display());
            text = text.replace(old, new);
        }
        let file = folder.path().join("nginx.conf");
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        // Its worker processes must reach the temporary folder, which belongs to us alone.
        let user = if rustix::process::getuid().is_root() { "user root; " } else { "" };
        let path = |name: &str| folder.path().join(name).display().to_string();
        let command = [
            program.display().to_string(),
            "-p".to_owned(),
            folder.path().display().to_string(),
            "-e".to_owned(),
            "stderr".to_owned(),
            "-c".to_owned(),
            file.display().to_string(),
            "-g".to_owned(),
            format!("{user}daemon off; pid {};", path("nginx.pid")),
        ];
        // Its workers end with it only if it is asked politely.
        let mut server = Guarded::spawn(folder.path(), Signal::TERM, &command);
        let client = Client::new(format!("http://127.0.0.1:{port}"), None);
        let ready = server
            .ready(|_pid| {
                let client = client.clone();
                async move {
                    let answer = client.try_get("/ready").await?;
                    if answer.status == 200 { Ok(()) } else { Err(answer.status.to_string()) }
                }
            })
            .await;
        if let Err(log) = ready {
            panic!("nginx does not start: {log}");
        }
        Self { _server: server, port, _folder: folder }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
