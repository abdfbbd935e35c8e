//! One child, seen from its parent.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::protocol::LONGEST;
use super::{Error, Limits, SUBCOMMAND};

/// How long a child that closed its output may take to be gone.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// What a child ended by that somebody else killed: the kernel, when memory is short, or an operator.
pub(super) const KILLED: &str = "signal 9";

/// Signals that tell a process to stop, as every Unix numbers them.
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
/// Ends a process whose processor time is used up, as Linux numbers it.
const SIGXCPU: i32 = 24;
/// How much of a child's last words is read.
const MOST_WORDS: u64 = 4_096;

/// A child; killed when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    answered: u32,
}

impl Process {
    /// Starts a child that sees nothing of this process.
    pub(super) fn start(program: &Path, limits: &Limits) -> Result<Self, Error> {
        let unavailable = |error: io::Error| Error::Unavailable(error.to_string());
        let mut child = Command::new(program)
            .arg(SUBCOMMAND)
            .arg(limits.memory.to_string())
            .arg(limits.time.as_secs().max(1).to_string())
            .env_clear()
            // Memory that is only set aside must not count against the limit.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            .envs(crate::test_hooks::passed_on())
            .current_dir("/")
            // Ctrl-C in the server's terminal is for the server: it ends its children itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(unavailable)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok(Self { child, stdin, stdout, answered: 0 }),
            _ => Err(Error::Unavailable("it has no pipes".into())),
        }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        let Self { stdin, stdout, .. } = self;
        let length = u32::try_from(request.len()).map_err(io::Error::other)?;
        stdin.write_all(&length.to_le_bytes()).await?;
        stdin.write_all(request).await?;
        stdin.flush().await?;
        let length = stdout.read_u32_le().await?;
        if length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // Grows with what arrives: a length alone reserves nothing.
        let mut answer = Vec::new();
        let read = stdout.take(u64::from(length)).read_to_end(&mut answer).await?;
        if read < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.answered += 1;
        Ok(answer)
    }

    /// How many requests it has answered.
    pub(super) fn answered(&self) -> u32 {
        self.answered
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What a child that gave no answer died of.
    pub(super) async fn why_it_ended(mut self, limits: &Limits) -> Error {
        let status = tokio::time::timeout(END_PATIENCE, self.child.wait()).await;
        let Ok(Ok(status)) = status else {
            return Error::Crashed("it stopped answering".into());
        };
        let mut words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let mut stderr = stderr.take(MOST_WORDS);
            let _ = tokio::time::timeout(END_PATIENCE, stderr.read_to_end(&mut words)).await;
        }
        if matches!(status.signal(), Some(SIGINT | SIGTERM)) {
            // Somebody stops the whole service: that is not the template's fault.
            return Error::Unavailable("it was told to stop".into());
        }
        if status.signal() == Some(SIGXCPU) {
            return Error::TimedOut(limits.time);
        }
        let words = String::from_utf8_lossy(&words);
        if words.contains("memory allocation of") || words.contains("out of memory") {
            return Error::TooMuchMemory(limits.memory);
        }
        Error::Crashed(described(status, &words))
    }
}

fn described(status: ExitStatus, words: &str) -> String {
    if words.contains("has overflowed its stack") {
        return "its stack overflowed".into();
    }
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit code {}", status.code().unwrap_or_default()),
    }
}
