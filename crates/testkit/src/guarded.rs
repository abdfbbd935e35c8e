//! A server process that cannot outlive the test that started it.
//!
//! Destructors do not run when a test is killed, so a second process watches: a small shell whose
//! standard input is a pipe that only the test holds. When the test ends in whatever way, the
//! kernel closes the pipe, the watcher reads the end of file, kills the server and removes its
//! folder.
//!
//! ```text
//!   test ──pipe──▶ watcher ── at end of file: kill the server, remove the folder
//!     └─ spawns ─▶ server    (same process id as the spawned shell: it replaces it by `exec`)
//! ```
//!
//! Both run in a process group of their own, so that a signal to the group of the test does not
//! hit the watcher first.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::eventually;

/// How long a server may take to come up or to go down.
const PATIENCE: Duration = Duration::from_secs(30);

/// `$0` is the folder, `$1` the signal that ends the server at once, the rest is the server.
/// A word on the pipe means that the server was already ended in good order.
const SCRIPT: &str = r#"
signal=$1; shift
exec 3<&0
{
    read -r word <&3 && exit
    kill -s "$signal" $$
    tries=0
    while kill -0 $$ && [ $tries -lt 50 ]; do tries=$((tries + 1)); sleep 0.1; done
    rm -rf "$0"
} &
exec "$@" 3<&- </dev/null
"#;

/// A running server, killed when the value is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Child,
    // Not left in `child`, whose `wait` would close it and so set the watcher going.
    watched: Option<ChildStdin>,
    folder: PathBuf,
    at_once: Signal,
}

impl Guarded {
    /// Starts a program with its output in `folder/log`; the folder is removed if the test is killed.
    pub(crate) fn spawn<S: AsRef<OsStr>>(folder: &Path, at_once: Signal, command: &[S]) -> Self {
        let log = fs::File::create(folder.join("log"))
            .and_then(|log| Ok((log.try_clone()?, log)))
            .unwrap_or_else(|error| panic!("cannot write in {}: {error}", folder.display()));
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(SCRIPT)
            .arg(folder)
            .arg(at_once.as_raw().to_string())
            .args(command)
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log.0)
            .stderr(log.1)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start sh: {error}"));
        Self { watched: child.stdin.take(), child, folder: folder.to_owned(), at_once }
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `probe` succeeds; `Err` holds the log of a server that ended instead.
    pub(crate) async fn ready<F, Fut>(&mut self, mut probe: F) -> Result<(), String>
    where
        F: FnMut(u32) -> Fut,
        Fut: Future<Output = Result<(), String>>,
    {
        let pid = self.pid();
        eventually(PATIENCE, || {
            let ended = self.ended();
            let answer = probe(pid);
            let log = self.folder.join("log");
            async move {
                match (ended, answer.await) {
                    (Some(status), _) => Ok(Err(format!("{status}: {}", last_lines(&log)))),
                    (None, Ok(())) => Ok(Ok(())),
                    (None, Err(reason)) => Err(format!("{reason}: {}", last_lines(&log))),
                }
            }
        })
        .await
    }

    /// Asks the server to end in good order and waits until it has.
    pub(crate) async fn stop(&mut self, politely: Signal) {
        self.signal(politely);
        eventually(PATIENCE, || {
            let ended = self.ended();
            async move { ended.ok_or("the server does not stop") }
        })
        .await;
        self.release_watcher();
    }

    /// Waits until the server has ended by itself.
    pub(crate) async fn until_ended(&mut self) -> ExitStatus {
        let status = eventually(PATIENCE, || {
            let ended = self.ended();
            async move { ended.ok_or("the server does not end") }
        })
        .await;
        self.release_watcher();
        status
    }

    /// Kills the server as a power failure would.
    pub(crate) fn kill(&mut self) {
        self.signal(self.at_once);
        self.child.wait().ok();
        self.release_watcher();
    }

    /// How the server has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal, unless the server has ended.
    pub(crate) fn signal(&mut self, signal: Signal) {
        // A child that was waited for has given its id away: never signal that.
        if self.ended().is_none() {
            kill_process(Pid::from_child(&self.child), signal).ok();
        }
    }

    fn release_watcher(&mut self) {
        if let Some(mut pipe) = self.watched.take() {
            pipe.write_all(b"ended\n").ok();
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A loopback port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .unwrap_or_else(|error| panic!("no free loopback port: {error}"))
}

/// Panics with the install line unless `program` is there.
pub(crate) fn require(program: Option<PathBuf>, name: &str, package: &str) -> PathBuf {
    program.unwrap_or_else(|| {
        panic!("this test needs {name}, which is not installed; run: apt-get install {package}")
    })
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}
