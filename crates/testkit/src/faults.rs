//! Faults of disk and clock for chosen processes: a library in C (`faults.c`), compiled here and loaded by `LD_PRELOAD`.
//!
//! libfaketime is not used: its processes share a semaphore, and one that is killed or frozen while it holds it
//! stops all others. The machine's own clock and disks are never touched.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use tempfile::TempDir;

use crate::temp_dir;

/// The library's source.
const SOURCE: &str = include_str!("faults.c");
/// `EIO`: the device failed.
const INPUT_OUTPUT_ERROR: i64 = 5;

/// Faults of the disk and the clock of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Added to the clock of the day, in milliseconds. The monotonic clock goes on as ever.
    pub clock_ms: i64,
    /// A write takes so much longer.
    pub write: Duration,
    /// A sync takes so much longer.
    pub sync: Duration,
    /// Writes fail with an input/output error.
    pub writes_fail: bool,
    /// Syncs fail with an input/output error.
    pub syncs_fail: bool,
    /// Of the calls that would fail, only one of so many does; 0 and 1: all.
    pub one_in: i64,
}

impl Wrong {
    /// The fields of `struct control` in `faults.c`.
    fn fields(self) -> [i64; 6] {
        let error = |fails: bool| if fails { INPUT_OUTPUT_ERROR } else { 0 };
        [
            self.clock_ms,
            self.write.as_micros() as i64,
            self.sync.as_micros() as i64,
            error(self.writes_fail),
            error(self.syncs_fail),
            self.one_in,
        ]
    }
}

/// A disk and a clock that can be made to fail, for all processes that are started with [`Faults::environment`].
#[derive(Debug)]
pub struct Faults {
    control: fs::File,
    wrong: Mutex<Wrong>,
    environment: Vec<(String, String)>,
    _folder: TempDir,
}

impl Faults {
    /// Nothing is wrong yet. The disk is the one that holds `on`: files on other devices are left alone.
    pub fn of_disk(on: &Path) -> Self {
        let folder = temp_dir();
        let (library, control) = (folder.path().join("faults.so"), folder.path().join("control"));
        compile(folder.path(), &library);
        let fields = Wrong::default().fields();
        fs::write(&control, fields.map(i64::to_ne_bytes).concat())
            .unwrap_or_else(|e| panic!("{}: {e}", control.display()));
        let device =
            fs::metadata(on).map(|on| on.dev()).unwrap_or_else(|e| panic!("{}: {e}", on.display()));
        let environment = vec![
            ("LD_PRELOAD".to_owned(), library.display().to_string()),
            ("STAMPEDE_FAULTS_CONTROL".to_owned(), control.display().to_string()),
            ("STAMPEDE_FAULTS_DEVICE".to_owned(), device.to_string()),
        ];
        let opened = fs::OpenOptions::new().write(true).open(&control);
        let control = opened.unwrap_or_else(|error| panic!("{}: {error}", control.display()));
        Self { control, wrong: Mutex::default(), environment, _folder: folder }
    }

    /// The variables with which a process has this disk and this clock.
    pub fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// Changes what is wrong, from now on.
    pub fn change(&self, change: impl FnOnce(&mut Wrong)) {
        let mut wrong = self.wrong.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut wrong);
        let bytes = wrong.fields().map(i64::to_ne_bytes).concat();
        // The processes have the file mapped: it must never be truncated.
        self.control.write_all_at(&bytes, 0).unwrap_or_else(|error| panic!("control: {error}"));
    }
}

fn compile(folder: &Path, library: &Path) {
    let source = folder.join("faults.c");
    fs::write(&source, SOURCE).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([library, &source])
        .arg("-ldl")
        .output()
        .unwrap_or_else(|error| {
            panic!("this test needs cc ({error}); run: apt-get install gcc libc6-dev")
        });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    /// Runs a shell command with the faults; returns success and output.
    fn run(faults: &Faults, script: &str) -> (bool, String) {
        let output =
            Command::new("bash").args(["-c", script]).envs(faults.environment()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    #[test]
    fn a_process_sees_a_wrong_clock_and_a_failing_slow_disk() {
        let folder = temp_dir();
        let faults = Faults::of_disk(folder.path());
        let file = folder.path().join("file").display().to_string();
        let write = format!("dd if=/dev/zero of={file} bs=10 count=1 conv=fsync status=none");
        assert!(run(&faults, &write).0);

        faults.change(|wrong| wrong.clock_ms = -3_600_500);
        let seconds: u64 = run(&faults, "date +%s").1.parse().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!((3_595..3_605).contains(&(now - seconds)), "{seconds}, {now}");

        faults.change(|wrong| wrong.syncs_fail = true);
        assert!(!run(&faults, &write).0);
        faults.change(|wrong| *wrong = Wrong { writes_fail: true, ..Wrong::default() });
        assert!(!run(&faults, &write).0);
        assert!(run(&faults, "echo 1 > /dev/null").0, "another device");

        let slow = Duration::from_millis(300);
        faults.change(|wrong| *wrong = Wrong { sync: slow, write: slow, ..Wrong::default() });
        let began = Instant::now();
        assert!(run(&faults, &write).0);
        assert!(began.elapsed() >= 2 * slow, "{:?}", began.elapsed());
    }
}
