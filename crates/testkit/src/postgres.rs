//! A real PostgreSQL, with durability turned off for speed.
//!
//! PostgreSQL refuses to run as root, so as root it runs as the user `postgres`, who then owns the
//! folder. `initdb` takes seconds; its result is kept in the temporary folder and copied.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Signal, geteuid};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::app::{children_of, kill, signal};
use crate::guarded::{Guarded, free_port, require};
use crate::temp_dir;

/// How often another port is tried before giving up.
const PORTS: usize = 5;

/// What the server is told besides its place; nothing a test writes has to survive the machine.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "max_connections=200",
];

/// A PostgreSQL server on a free loopback port; everybody on this machine may connect.
#[derive(Debug)]
pub struct Postgres {
    // Declared before the folder: the server must be gone when the folder is removed.
    server: Guarded,
    port: u16,
    databases: AtomicU32,
    folder: TempDir,
}

impl Postgres {
    /// Starts an empty server.
    pub async fn start() -> Self {
        let folder = temp_dir();
        let path = folder.path().to_owned();
        spawn_blocking(move || prepare(&path))
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        let mut reason = String::new();
        for _ in 0..PORTS {
            let port = free_port();
            match launch(folder.path(), port).await {
                Ok(server) => {
                    return Self { server, port, databases: AtomicU32::new(0), folder };
                }
                Err(log) => reason = log,
            }
        }
        panic!("postgres does not start: {reason}")
    }

    /// The address of its first database.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes another, empty database and returns its address.
    pub async fn fresh_database(&self) -> String {
        let name = format!("fresh_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut createdb = Command::new(programs().join("createdb"));
        createdb.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string(), &name]);
        spawn_blocking(move || run(createdb))
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.url_of(&name)
    }

    /// Ends the server in good order, cutting off its clients; its data stays.
    pub async fn stop(&mut self) {
        self.server.stop(Signal::INT).await;
    }

    /// Kills the server and all its backends with `kill -9`, as a crash of the machine would.
    pub fn kill(&mut self) {
        let backends = children_of(self.server.pid());
        self.server.signal(Signal::KILL);
        backends.into_iter().for_each(kill);
        self.server.kill();
    }

    /// Stops the server and its backends in their tracks (SIGSTOP) until they are thawed.
    pub fn freeze(&mut self) {
        self.server.signal(Signal::STOP);
        children_of(self.server.pid()).into_iter().for_each(|pid| signal(pid, Signal::STOP));
    }

    /// Lets the server and its backends go on where they were frozen.
    pub fn thaw(&mut self) {
        children_of(self.server.pid()).into_iter().for_each(|pid| signal(pid, Signal::CONT));
        self.server.signal(Signal::CONT);
    }

    /// Starts a stopped or killed server again: same port, same data.
    pub async fn start_again(&mut self) {
        match launch(self.folder.path(), self.port).await {
            Ok(server) => self.server = server,
            Err(log) => panic!("postgres does not start again: {log}"),
        }
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

async fn launch(folder: &Path, port: u16) -> Result<Guarded, String> {
    let data = folder.join("data");
    let mut command = as_postgres(&programs().join("postgres"));
    command.extend(["-D".into(), data.display().to_string(), "-p".into(), port.to_string()]);
    for setting in SETTINGS {
        command.extend(["-c".into(), (*setting).to_owned()]);
    }
    // SIGQUIT is PostgreSQL's "immediately": like a crash, but it frees its shared memory.
    let mut server = Guarded::spawn(folder, Signal::QUIT, &command);
    let status = data.join("postmaster.pid");
    server
        .ready(|pid| {
            // Its first line is the process id, its last one says how far the start has come.
            let lines = fs::read_to_string(&status).unwrap_or_default();
            let ours = lines.starts_with(&format!("{pid}\n"));
            let ready = lines.lines().last().is_some_and(|line| line.trim() == "ready");
            async move { if ours && ready { Ok(()) } else { Err("postgres is starting".into()) } }
        })
        .await?;
    Ok(server)
}

/// Puts a fresh data directory into the folder and gives it to the server's user.
fn prepare(folder: &Path) {
    let template = template();
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(template).arg(folder.join("data"));
    run(copy);
    if geteuid().is_root() {
        let mut chown = Command::new("chown");
        chown.arg("postgres:postgres").arg(folder);
        run(chown);
    }
}

/// The folder `initdb` once filled on this machine; made by whichever test comes first.
fn template() -> PathBuf {
    let version = programs().parent().and_then(Path::file_name).map(OsStr::to_owned);
    let name =
        format!("stampede-initdb-{}-{}", version.unwrap_or_default().display(), geteuid().as_raw());
    let template = std::env::temp_dir().join(name);
    if template.join("PG_VERSION").is_file() {
        return template;
    }
    let work = temp_dir();
    if geteuid().is_root() {
        let mut chown = Command::new("chown");
        chown.arg("postgres:postgres").arg(work.path());
        run(chown);
    }
    let data = work.path().join("data");
    let line = as_postgres(&programs().join("initdb"));
    let mut initdb = Command::new(&line[0]);
    initdb.args(&line[1..]).current_dir(work.path());
    initdb.args([
        "--no-sync",
        "--auth=trust",
        "--username=postgres",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
    ]);
    run(initdb.arg("-D").arg(&data));
    // Renaming is all or nothing; when another test was faster, its folder is as good as ours.
    fs::rename(&data, &template).ok();
    template
}

/// The command line that runs a program as a user PostgreSQL accepts.
fn as_postgres(program: &Path) -> Vec<String> {
    let mut line = Vec::new();
    if geteuid().is_root() {
        let drop_root = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"];
        line.extend(drop_root.map(str::to_owned));
    }
    line.push(program.display().to_string());
    line
}

/// The folder of the newest installed PostgreSQL; Debian keeps it off the path.
fn programs() -> PathBuf {
    let version = |folder: &Path| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| folder.join("bin/postgres").is_file())
        .max_by_key(|folder| version(folder))
        .map(|folder| folder.join("bin"));
    require(newest, "PostgreSQL", "postgresql")
}

fn run(mut command: impl std::borrow::BorrowMut<Command>) {
    let command = command.borrow_mut();
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
