//! A server in its own process: it can be killed, its memory can be measured, and its disk can be
//! small. The test binary starts itself with the ignored test below.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stampede_engine::{Config, Fsync, JournalConfig, Server};

use crate::wire::{Wire, from_env};

const DIR: &str = "STAMPEDE_CHILD_DIR";
const POLICY: &str = "STAMPEDE_CHILD_POLICY";
const THREADS: &str = "STAMPEDE_CHILD_THREADS";
const CLIENTS: &str = "STAMPEDE_CHILD_CLIENTS";
const NAME: &str = "process::child_that_serves_until_it_is_killed";

#[test]
#[ignore = "the child of other tests"]
fn child_that_serves_until_it_is_killed() {
    let fsync = match std::env::var(POLICY).as_deref() {
        Ok("always") => Fsync::Always,
        Ok("everysec") => Fsync::EverySec,
        Ok("never") => Fsync::Never,
        _ => return,
    };
    let started = Server::start(Config {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        dir: std::env::var_os(DIR).map(Into::into),
        journal: JournalConfig { fsync, ..JournalConfig::default() },
        io_threads: from_env(THREADS, 2) as usize,
        max_clients: from_env(CLIENTS, 10_000) as usize,
        script_time: Duration::from_secs(3),
        script_memory: 64 << 20,
        ..Config::default()
    });
    let server = match started {
        Ok(server) => server,
        Err(error) => return println!("\nrefused {error}"),
    };
    let torn = server.opened().and_then(|opened| opened.contents.torn.clone());
    println!(
        "\nserves {} torn {} replay_ms {}",
        server.tcp_addr().unwrap(),
        torn.map_or(0, |torn| torn.bytes),
        server.replay_time().as_millis()
    );
    // Until the test closes the pipe, also by its death.
    let _ = std::io::stdin().read(&mut [0]);
    server.stop().unwrap();
}

/// How the process is started.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    pub(crate) dir: Option<&'a Path>,
    pub(crate) policy: &'a str,
    pub(crate) threads: usize,
    /// A shell command to run before it, in a mount namespace of their own.
    pub(crate) before: Option<String>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { dir: None, policy: "everysec", threads: 2, before: None }
    }
}

/// A running server.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The number of bytes of a torn tail that was cut at the start.
    pub(crate) torn_bytes: u64,
    /// How long the replay of its journal took.
    pub(crate) replay: Duration,
}

impl Process {
    pub(crate) fn start(options: &Options<'_>) -> Self {
        Self::try_start(options)
            .unwrap_or_else(|reason| panic!("the child does not serve: {reason}"))
    }

    /// Starts a server, or returns why it refused to start.
    pub(crate) fn try_start(options: &Options<'_>) -> Result<Self, String> {
        let binary = std::env::current_exe().unwrap();
        let mut command = match &options.before {
            None => Command::new(binary),
            Some(before) => {
                let mut command = Command::new("unshare");
                command.args(["--map-root-user", "--mount", "sh", "-ec"]);
                command.arg(format!("{before}\nexec \"$0\" \"$@\"")).arg(binary);
                command
            }
        };
        command
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1", NAME])
            .env(POLICY, options.policy)
            .env(THREADS, options.threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(dir) = options.dir {
            command.env(DIR, dir);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(reason) = line.strip_prefix("refused ") {
                child.wait().unwrap();
                return Err(reason.to_owned());
            }
            if let Some(rest) = line.strip_prefix("serves ") {
                let words: Vec<&str> = rest.split(' ').collect();
                let number = |index: usize| words[index].parse::<u64>().unwrap();
                let (address, torn_bytes) = (words[0].parse().unwrap(), number(2));
                let replay = Duration::from_millis(number(4));
                // The output must be read, or the child blocks when it prints much.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Self { child, address, torn_bytes, replay });
            }
        }
        child.wait().unwrap();
        Err("it printed nothing".to_owned())
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server with `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the server cleanly.
    pub(crate) fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// The current memory use.
    pub(crate) fn memory_mb(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The peak memory use.
    pub(crate) fn peak_mb(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
