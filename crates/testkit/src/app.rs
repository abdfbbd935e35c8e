//! The real binary: started with settings, killed in parts, started again on the same data.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;
use crate::guarded::{Guarded, free_port};
use crate::small_disk::SmallDisk;
use crate::temp_dir;

/// The admin key of every server under test.
pub const ADMIN_KEY: &str = "the-admin-key-of-this-test";
/// How often another port is tried before giving up.
const PORTS: usize = 5;

/// A running `stampede serve` with its own data directory.
#[derive(Debug)]
pub struct App {
    // Declared before the folder: the server must be gone when the folder is removed.
    server: Guarded,
    binary: PathBuf,
    settings: Vec<(String, String)>,
    /// Words before the command line, such as those that enter a namespace.
    before: Vec<String>,
    port: u16,
    folder: TempDir,
}

impl App {
    /// Starts the binary on a free port and waits until it is ready. Without settings it uses the
    /// embedded engine and SQLite.
    pub async fn start(binary: impl Into<PathBuf>, settings: &[(&str, &str)]) -> Self {
        Self::start_within(Vec::new(), binary, settings).await
    }

    /// Starts the binary as [`App::start`] does, in a place where it sees the small disk.
    pub async fn start_on(
        disk: &SmallDisk,
        binary: impl Into<PathBuf>,
        settings: &[(&str, &str)],
    ) -> Self {
        Self::start_within(disk.enter(), binary, settings).await
    }

    async fn start_within(
        before: Vec<String>,
        binary: impl Into<PathBuf>,
        settings: &[(&str, &str)],
    ) -> Self {
        let (binary, folder) = (binary.into(), temp_dir());
        let mut settings: Vec<(String, String)> = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut reason = String::new();
        for _ in 0..PORTS {
            let port = free_port();
            match launch(&before, &binary, folder.path(), port, &settings).await {
                Ok(server) => {
                    settings.sort();
                    return Self { server, binary, settings, before, port, folder };
                }
                // Somebody else took the port meanwhile, or the settings are wrong.
                Err(log) => reason = log,
            }
        }
        panic!("the server does not start: {reason}")
    }

    /// Ends the server in good order.
    pub async fn stop(&mut self) {
        self.server.stop(Signal::TERM).await;
    }

    /// Kills the server process, not its workers, as `kill -9` does.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Kills the server with the engine in it, and all its workers, as a crash of the machine would.
    pub fn kill_everything(&mut self) {
        let workers = self.workers();
        self.server.kill();
        workers.into_iter().for_each(kill);
    }

    /// Sends a signal to the server process alone.
    pub fn signal(&mut self, signal: Signal) {
        self.server.signal(signal);
    }

    /// Waits until the server has ended by itself, and returns how.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        self.server.until_ended().await
    }

    /// Starts a stopped or killed server again on the same data, with these settings changed.
    pub async fn start_again(&mut self, changed: &[(&str, &str)]) {
        for (name, value) in changed {
            self.settings.retain(|(known, _)| known != name);
            self.settings.push(((*name).to_owned(), (*value).to_owned()));
        }
        let launched =
            launch(&self.before, &self.binary, self.folder.path(), self.port, &self.settings);
        match launched.await {
            Ok(server) => self.server = server,
            Err(log) => panic!("the server does not start again: {log}"),
        }
    }

    /// Launches a killed or ended server again on the same data, and does not wait until it is ready: it may fail.
    /// Its log begins anew.
    pub fn launch_again(&mut self) {
        self.server =
            spawn(&self.before, &self.binary, self.folder.path(), self.port, &self.settings);
    }

    /// Whether the server has ended.
    pub fn has_ended(&mut self) -> bool {
        self.server.ended().is_some()
    }

    /// A client with the admin key.
    pub fn admin(&self) -> Client {
        self.client(ADMIN_KEY)
    }

    /// A client with any key.
    pub fn client(&self, key: &str) -> Client {
        Client::new(self.url(), Some(key))
    }

    /// A client without a key.
    pub fn stranger(&self) -> Client {
        Client::new(self.url(), None)
    }

    /// Where the server listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What it has written to its terminal so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// The file that holds it, for a test that reads while the server starts.
    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Process id of the server.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Process ids of its workers.
    pub fn workers(&self) -> Vec<u32> {
        self.children("\0worker\0")
    }

    /// Its child processes whose command line contains this.
    fn children(&self, command: &str) -> Vec<u32> {
        let line = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline"));
        let mut children = children_of(self.server.pid());
        children.retain(|pid| line(pid).is_ok_and(|line| line.contains(command)));
        children
    }

    /// Runs another command of the binary with the server's settings; returns success and output.
    pub fn command(&self, arguments: &[&str]) -> (bool, String) {
        let binary = self.binary.display().to_string();
        let words: Vec<&String> = self.before.iter().chain([&binary]).collect();
        let output = std::process::Command::new(words[0])
            .args(&words[1..])
            .args(arguments)
            .env_clear()
            .envs(environment(self.folder.path(), self.port, &self.settings))
            .env_remove("ADMIN_KEY")
            .output()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", self.binary.display()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    }

    /// Orders tickets as the admin; returns the order's answer.
    pub async fn order(&self, order: Value) -> Value {
        self.admin().post("/api/tickets", &order).await.expect(200)
    }
}

/// Kills a process as `kill -9` does.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        // It may have just ended by itself.
        kill_process(pid, signal).ok();
    }
}

/// Process ids of the children of a process.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        (parent_of(pid)? == parent).then_some(pid)
    });
    processes.collect()
}

async fn launch(
    before: &[String],
    binary: &Path,
    folder: &Path,
    port: u16,
    settings: &[(String, String)],
) -> Result<Guarded, String> {
    let mut server = spawn(before, binary, folder, port, settings);
    let client = Client::new(format!("http://127.0.0.1:{port}"), None);
    let serves = !settings.iter().any(|(name, value)| name == "WORKER_MODE" && value == "worker");
    let log = folder.join("log");
    server
        .ready(|_pid| {
            let (client, log) = (client.clone(), log.clone());
            async move {
                if !serves {
                    // A node that only works is ready when its first worker says so.
                    let text = fs::read_to_string(&log).unwrap_or_default();
                    let ready = text.lines().any(|line| line.contains("INFO ready"));
                    return if ready { Ok(()) } else { Err("no worker is ready".to_owned()) };
                }
                let answer = client.try_get("/ready").await?;
                if answer.status == 200 { Ok(()) } else { Err(answer.body.to_string()) }
            }
        })
        .await?;
    Ok(server)
}

fn spawn(
    before: &[String],
    binary: &Path,
    folder: &Path,
    port: u16,
    settings: &[(String, String)],
) -> Guarded {
    // `env` replaces itself by the server, so the process id stays.
    let mut command = before.to_vec();
    command.extend(["env".to_owned(), "-i".to_owned()]);
    command.extend(
        environment(folder, port, settings).iter().map(|(name, value)| format!("{name}={value}")),
    );
    command.extend([binary.display().to_string(), "serve".to_owned()]);
    Guarded::spawn(folder, Signal::KILL, &command)
}

fn environment(folder: &Path, port: u16, settings: &[(String, String)]) -> Vec<(String, String)> {
    // Nothing of the developer's own settings: a test must not reach somebody's database.
    let path = std::env::var("PATH").unwrap_or_default();
    let mut environment = vec![
        ("PATH".to_owned(), path),
        ("DATA_DIR".to_owned(), folder.join("data").display().to_string()),
        ("PORT".to_owned(), port.to_string()),
        ("ADMIN_KEY".to_owned(), ADMIN_KEY.to_owned()),
        ("WORKER_COUNT".to_owned(), "2".to_owned()),
    ];
    environment.extend(settings.iter().cloned());
    environment
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
