//! A process of the test's own that can be killed, frozen and thawed.

use std::fs;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::guarded::Guarded;
use crate::temp_dir;

/// A running process with a folder of its own; it dies with the test.
#[derive(Debug)]
pub struct Process {
    // Declared before the folder: the process must be gone when the folder is removed.
    guarded: Guarded,
    folder: TempDir,
}

impl Process {
    /// Starts a program, found by name or path, with more variables in its environment.
    pub fn start(command: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = temp_dir();
        let variables = environment.iter().map(|(name, value)| format!("{name}={value}"));
        let command: Vec<String> = ["env".to_owned()]
            .into_iter()
            .chain(variables)
            .chain(command.iter().map(|word| (*word).to_owned()))
            .collect();
        Self { guarded: Guarded::spawn(folder.path(), Signal::KILL, &command), folder }
    }

    /// Starts this test binary again to run one of its tests only, which
    /// tells by its environment that it is meant.
    pub fn this_test(name: &str, environment: &[(&str, &str)]) -> Self {
        let binary = std::env::current_exe()
            .unwrap_or_else(|error| panic!("cannot find this test's own binary: {error}"));
        let binary = binary.display().to_string();
        Self::start(&[&binary, "--exact", name, "--nocapture"], environment)
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.guarded.kill();
    }

    /// Stops it in its tracks (SIGSTOP) until it is thawed.
    pub fn freeze(&mut self) {
        self.guarded.signal(Signal::STOP);
    }

    /// Lets it go on where it was frozen.
    pub fn thaw(&mut self) {
        self.guarded.signal(Signal::CONT);
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(&mut self) {
        self.guarded.stop(Signal::TERM).await;
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}
