//! A server that speaks the Redis protocol, as durable as Stampede asks operators to run it.
//!
//! `STAMPEDE_TEST_SERVER` chooses the server of tests that need no particular one ([`Redis::start`]):
//!
//! | value | server |
//! |---|---|
//! | not set, or `redis` | redis-server |
//! | `valkey` | valkey-server |
//! | `engine` | our own engine, as a process: the example `test_server` of `crates/broker` |
//!
//! Tests that change settings of `redis.conf` ([`Redis::with_config`]) never run on the engine, which has none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::guarded::{Guarded, free_port, require};
use crate::temp_dir;

/// How often another port is tried before giving up.
const PORTS: usize = 5;

/// A server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Redis,
    Valkey,
    Engine,
}

impl Program {
    /// The program that `STAMPEDE_TEST_SERVER` names.
    fn chosen() -> Self {
        match std::env::var("STAMPEDE_TEST_SERVER").unwrap_or_default().as_str() {
            "" | "redis" => Self::Redis,
            "valkey" => Self::Valkey,
            "engine" => Self::Engine,
            other => panic!("STAMPEDE_TEST_SERVER={other}: use redis, valkey or engine"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
            Self::Engine => "the engine",
        }
    }

    /// The command that starts it.
    fn command(self, folder: &Path, port: u16, config: &[(String, String)]) -> Vec<String> {
        let (program, package) = match self {
            Self::Redis => (find_program(), self.name()),
            Self::Valkey => (find(self.name()), self.name()),
            Self::Engine => {
                let dir = folder.display().to_string();
                return vec![engine_program(), port.to_string(), dir];
            }
        };
        let program = require(program, package, package);
        let mut command = vec![program.display().to_string()];
        let place = [
            ("port".to_owned(), port.to_string()),
            ("bind".to_owned(), "127.0.0.1".into()),
            ("dir".to_owned(), folder.display().to_string()),
        ];
        for (name, value) in place.iter().chain(config) {
            command.extend([format!("--{name}"), value.clone()]);
        }
        command
    }
}

/// The engine's program: Cargo builds examples together with tests, in the folder beside theirs.
fn engine_program() -> String {
    let tests = std::env::current_exe().unwrap_or_default();
    let built =
        tests.parent().and_then(Path::parent).map(|debug| debug.join("examples/test_server"));
    match built.filter(|program| program.is_file()) {
        Some(program) => program.display().to_string(),
        None => panic!(
            "STAMPEDE_TEST_SERVER=engine needs the example test_server: cargo build -p stampede-broker --examples"
        ),
    }
}

/// A server with an append-only file and `noeviction`, on a free loopback port.
#[derive(Debug)]
pub struct Redis {
    // Declared before the folder: the server must be gone when the folder is removed.
    server: Guarded,
    port: u16,
    program: Program,
    config: Vec<(String, String)>,
    folder: TempDir,
}

impl Redis {
    /// Starts an empty server: the one that `STAMPEDE_TEST_SERVER` names.
    pub async fn start() -> Self {
        Self::launch_new(Program::chosen(), &[]).await
    }

    /// Starts an empty redis-server or valkey-server with some settings of `redis.conf` changed.
    pub async fn with_config(settings: &[(&str, &str)]) -> Self {
        let program = match Program::chosen() {
            Program::Engine => Program::Redis,
            program => program,
        };
        Self::launch_new(program, settings).await
    }

    async fn launch_new(program: Program, settings: &[(&str, &str)]) -> Self {
        let mut config: Vec<(String, String)> = Vec::new();
        let defaults = [("appendonly", "yes"), ("save", ""), ("maxmemory-policy", "noeviction")];
        for (name, value) in defaults.iter().chain(settings) {
            config.retain(|(known, _)| known != name);
            config.push(((*name).to_owned(), (*value).to_owned()));
        }
        let folder = temp_dir();
        let mut reason = String::new();
        for _ in 0..PORTS {
            let port = free_port();
            match launch(program, &folder, port, &config, Ready::Loaded).await {
                Ok(server) => {
                    return Self { server, port, program, config, folder };
                }
                // Another process took the port meanwhile, or the settings are wrong.
                Err(log) => reason = log,
            }
        }
        panic!("{} does not start: {reason}", program.name())
    }

    /// The server's address for clients: `redis://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it keeps its data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What redis-cli prints.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("redis-cli")
            .args(["-p", &self.port.to_string()])
            .args(arguments)
            .output();
        let output = output.unwrap_or_else(|error| {
            panic!("redis-cli ({error}) comes with redis-server: apt-get install redis-server")
        });
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Ends the server in good order; its data stays.
    pub async fn stop(&mut self) {
        self.server.stop(Signal::TERM).await;
    }

    /// Kills the server as a power failure would; what reached the disk stays.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Stops the server in its tracks (SIGSTOP) until it is thawed.
    pub fn freeze(&mut self) {
        self.server.signal(Signal::STOP);
    }

    /// Lets the server go on where it was frozen.
    pub fn thaw(&mut self) {
        self.server.signal(Signal::CONT);
    }

    /// Starts a stopped or killed server again: same port, same data.
    pub async fn start_again(&mut self) {
        self.launch_again(&self.config.clone(), Ready::Loaded).await;
    }

    /// Starts a stopped or killed redis-server again, which loads its data slowly, a quarter of a millisecond per
    /// command; returns while it loads.
    pub async fn start_again_slowly(&mut self) {
        let slowly = ("key-load-delay".to_owned(), "200".to_owned());
        let config: Vec<_> = self.config.iter().cloned().chain([slowly]).collect();
        self.launch_again(&config, Ready::Loading).await;
    }

    async fn launch_again(&mut self, config: &[(String, String)], ready: Ready) {
        match launch(self.program, &self.folder, self.port, config, ready).await {
            Ok(server) => self.server = server,
            Err(log) => panic!("{:?} does not start again: {log}", self.program),
        }
    }

    /// Stops the server in good order and starts it again.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }
}

/// What to wait for after a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// It has read its data.
    Loaded,
    /// It answers that it reads its data.
    Loading,
}

async fn launch(
    program: Program,
    folder: &TempDir,
    port: u16,
    config: &[(String, String)],
    ready: Ready,
) -> Result<Guarded, String> {
    let command = program.command(folder.path(), port, config);
    let mut server = Guarded::spawn(folder.path(), Signal::KILL, &command);
    server.ready(|pid| answers_as(pid, port, ready)).await?;
    Ok(server)
}

/// Asks for the process id, so that a stranger's server on the same port is not taken for ours.
async fn answers_as(pid: u32, port: u16, ready: Ready) -> Result<(), String> {
    let conversation = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"INFO server\r\nPING\r\nQUIT\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(Duration::from_secs(5), conversation)
        .await
        .map_err(|_| "redis-server does not answer".to_owned())?
        .map_err(|error| error.to_string())?;
    let wanted = if ready == Ready::Loaded { "+PONG" } else { "-LOADING" };
    if answer.contains(&format!("process_id:{pid}\r\n")) && answer.contains(wanted) {
        Ok(())
    } else {
        Err(format!("redis-server answers {:?}", answer.lines().last().unwrap_or_default()))
    }
}

pub(crate) fn find_program() -> Option<PathBuf> {
    find("redis-server")
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/local/bin"), PathBuf::from("/usr/bin")])
        .map(|folder| folder.join(program))
        .find(|program| program.is_file())
}
