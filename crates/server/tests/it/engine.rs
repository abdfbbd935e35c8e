//! `stampede engine`: run alone, copied, checked and repaired, by the commands a person types.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use stampede_testkit::{Redis, temp_dir};

use crate::STAMPEDE;

/// A running `stampede engine run`.
struct Engine {
    child: Child,
    /// What it printed until it listened.
    banner: String,
    /// Kept open, as a terminal is.
    _stdout: BufReader<ChildStdout>,
}

impl Engine {
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = command(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut banner = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !banner.contains("Stop ") {
            if lines.read_line(&mut banner).unwrap() == 0 {
                let mut error = String::new();
                child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
                panic!("the engine does not start: {banner}{error}");
            }
        }
        Self { child, banner, _stdout: lines }
    }

    /// Its address, as printed.
    fn url(&self) -> String {
        let start = self.banner.find("redis://").unwrap_or_else(|| panic!("{}", self.banner));
        self.banner[start..].split_whitespace().next().unwrap().to_owned()
    }

    fn port(&self) -> String {
        self.url().rsplit(':').next().unwrap().to_owned()
    }

    fn cli(&self, words: &[&str]) -> String {
        redis_cli(&["-p", &self.port()], words)
    }

    fn stop(mut self) {
        let kill = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(kill.success());
        assert!(self.child.wait().unwrap().success(), "SIGTERM ends it in good order");
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(STAMPEDE);
    command.arg("engine").args(arguments).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn output(arguments: &[&str]) -> (bool, String) {
    let (code, text) = coded(arguments);
    (code == Some(0), text)
}

/// The exit code of a command, and what it prints.
fn coded(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Flips a bit in the middle of the newest file with an extension.
fn damage(dir: &Path, extension: &str) {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let file = files.filter(|path| path.extension().is_some_and(|end| end == extension)).max();
    let file = file.unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
}

fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    // The lock holds the number of the last process.
    let files = files.filter(|path| !path.ends_with("lock"));
    let mut files: Vec<_> =
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

/// What redis-cli prints, complaints included.
fn redis_cli(server: &[&str], words: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(server)
        .arg("--no-auth-warning")
        .args(words)
        .output()
        .expect("redis-cli comes with redis-server: apt-get install redis-server");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).trim_end().to_owned()
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[test]
fn alone_without_a_word_it_explains_itself() {
    let (well, text) = output(&[]);
    assert!(!well);
    for word in ["run", "export", "import", "check", "repair", "--unixsocket", "--fsync", "--port"]
    {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
    // The server's settings would only be in the way here.
    assert!(!text.contains("--worker-count") && !text.contains("--api-port"), "{text}");
}

#[test]
fn it_runs_without_the_word_run_and_keeps_what_it_was_given() {
    let folder = temp_dir();
    let dir = folder.path().join("journal");
    let arguments = ["--port", "0", "--dir", path(&dir), "--fsync", "always"];
    let engine = Engine::start(&arguments, &[("PORT", "http"), ("LOG_LEVEL", "warn")]);
    assert_eq!(engine.cli(&["SET", "a", "1"]), "OK");
    engine.kill();
    let engine = Engine::start(&arguments, &[]);
    assert!(engine.banner.contains("1 records"), "{}", engine.banner);
    assert_eq!(engine.cli(&["GET", "a"]), "1");
    // Whoever comes second is told who was first.
    let (well, text) = output(&["run", "--port", "0", "--dir", path(&dir)]);
    let pid = engine.child.id().to_string();
    assert!(!well && text.contains("in use by") && text.contains(&pid), "{text}");
    let port = engine.port();
    let other = folder.path().join("other");
    let (well, text) = output(&["run", "--port", &port, "--dir", path(&other)]);
    assert!(!well && text.contains(&port) && text.contains("in use"), "{text}");
    engine.stop();
}

#[test]
fn a_password_is_asked_for_and_an_open_port_needs_one() {
    let engine = Engine::start(
        &["run", "--port", "0", "--in-memory"],
        &[("ENGINE_PASSWORD", "open sesame")],
    );
    assert!(!engine.banner.contains("sesame"), "{}", engine.banner);
    assert!(engine.cli(&["GET", "a"]).contains("NOAUTH"));
    assert_eq!(engine.cli(&["-a", "open sesame", "GET", "a"]), "");
    let (well, text) = output(&["run", "--port", "0", "--bind", "0.0.0.0", "--in-memory"]);
    assert!(!well && text.contains("ENGINE_PASSWORD"), "{text}");
}

#[test]
fn a_socket_alone_opens_no_port() {
    let folder = temp_dir();
    let socket = folder.path().join("engine.sock");
    let engine = Engine::start(&["--unixsocket", path(&socket), "--in-memory"], &[]);
    assert!(!engine.banner.contains("redis://"), "{}", engine.banner);
    assert_eq!(redis_cli(&["-s", path(&socket)], &["PING"]), "PONG");
    engine.stop();
    assert!(!socket.exists(), "the socket file goes with the engine");
}

#[tokio::test]
async fn everything_can_be_moved_to_a_redis_and_back() {
    let folder = temp_dir();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let engine = Engine::start(&["run", "--port", "0", "--dir", path(&first)], &[]);
    engine.cli(&["SET", "text", "with\nlines"]);
    engine.cli(&["RPUSH", "list", "1", "2", "3"]);
    engine.cli(&["XADD", "stream", "5-5", "a", "b"]);
    engine.cli(&["XDEL", "stream", "5-5"]);
    engine.cli(&["-n", "9", "ZADD", "zset", "1.5", "x"]);
    let redis = Redis::start().await;
    let url = redis.url();
    // From a running engine, then from its journal.
    let (well, text) = output(&["export", "--from", &engine.url(), "--to", &url]);
    assert!(well && text.contains("Copied 4 keys"), "{text}");
    let (well, text) = output(&["export", "--dir", path(&first), "--to", &url]);
    assert!(!well && text.contains("in use") && text.contains("engine.url"), "{text}");
    engine.stop();
    let (well, text) = output(&["export", "--dir", path(&first), "--to", &url]);
    assert!(!well && text.contains("is not empty") && text.contains("--replace"), "{text}");
    let (well, text) = output(&["export", "--dir", path(&first), "--to", &url, "--replace"]);
    assert!(well && text.contains("database 9: 1 sorted sets"), "{text}");
    let port = redis.port().to_string();
    assert_eq!(redis_cli(&["-p", &port], &["LRANGE", "list", "0", "-1"]), "1\n2\n3");
    let (well, text) = output(&["import", "--from", &url, "--dir", path(&second)]);
    assert!(well && text.contains("Copied 4 keys"), "{text}");
    let engine = Engine::start(&["run", "--port", "0", "--dir", path(&second)], &[]);
    assert_eq!(engine.cli(&["GET", "text"]), "with\nlines");
    assert_eq!(engine.cli(&["-n", "9", "ZSCORE", "zset", "x"]), "1.5");
    assert!(engine.cli(&["XADD", "stream", "5-5", "a", "b"]).contains("equal or smaller"));
    let (well, text) = output(&["export", "--dir", "/no/such/folder", "--to", &url]);
    assert!(!well && text.contains("no journal in /no/such/folder"), "{text}");
}

#[test]
fn a_damaged_snapshot_is_refused_and_salvaged_only_when_asked() {
    let folder = temp_dir();
    let dir = folder.path().join("journal");
    let arguments = ["run", "--port", "0", "--dir", path(&dir)];
    let engine = Engine::start(&arguments, &[]);
    for n in 0..50 {
        engine.cli(&["SET", &format!("key-{n}"), &"x".repeat(10_000)]);
    }
    engine.cli(&["BGREWRITEAOF"]);
    let deadline = std::time::Instant::now() + crate::PATIENCE;
    let is_snapshot = |path: PathBuf| path.extension().is_some_and(|end| end == "snapshot");
    while !std::fs::read_dir(&dir).unwrap().any(|entry| is_snapshot(entry.unwrap().path()))
        || engine.cli(&["INFO", "persistence"]).contains("aof_rewrite_in_progress:1")
    {
        assert!(std::time::Instant::now() < deadline, "no snapshot: {:?}", std::fs::read_dir(&dir));
    }
    engine.cli(&["SET", "later", "1"]);
    engine.stop();
    damage(&dir, "snapshot");
    let before = contents(&dir);
    for command in ["check", "repair"] {
        let (code, text) = coded(&[command, "--dir", path(&dir)]);
        assert_eq!(code, Some(4), "{text}");
        for part in ["no state of any moment", "backup", "--salvage", "key-", "Nothing was changed"]
        {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        assert_eq!(contents(&dir), before, "{command} changes nothing");
    }
    let (code, text) = coded(&["repair", "--salvage", "--dir", path(&dir)]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("the state of no moment") && text.contains("key-"), "{text}");
    let engine = Engine::start(&arguments, &[]);
    let left: u32 = engine.cli(&["DBSIZE"]).parse().unwrap();
    assert!((30..50).contains(&left), "{left}");
    assert_eq!(engine.cli(&["GET", "later"]), "1");
    engine.stop();
}

#[test]
fn a_damaged_journal_is_named_repaired_and_used_again() {
    let folder = temp_dir();
    let dir = folder.path().join("journal");
    let arguments = ["run", "--port", "0", "--dir", path(&dir)];
    let engine = Engine::start(&arguments, &[]);
    for n in 0..50 {
        engine.cli(&["SET", &format!("key-{n}"), &"x".repeat(100)]);
    }
    engine.stop();
    let (well, text) = output(&["check", "--dir", path(&dir)]);
    assert!(well && text.contains("50 records") && text.contains("It is whole"), "{text}");
    let (well, text) = output(&["repair", "--dir", path(&dir)]);
    assert!(well && text.contains("nothing was changed"), "{text}");

    damage(&dir, "log");
    let (well, text) = output(&["run", "--dir", path(&dir)]);
    assert!(!well && text.contains("is damaged at byte"), "{text}");
    let before = contents(&dir);
    // The check tells first what the repair then does.
    let (code, planned) = coded(&["check", "--dir", path(&dir)]);
    assert_eq!(code, Some(3), "{planned}");
    assert_eq!(contents(&dir), before, "a check changes nothing");
    let repair = format!("stampede engine repair --dir {}", path(&dir));
    assert!(text.contains(&repair) && planned.contains(&repair), "{text}{planned}");
    let (code, text) = coded(&["repair", "--dir", path(&dir)]);
    assert_eq!(code, Some(3), "{text}");
    let lost = |text: &str| text.lines().find(|line| line.contains("  lost ")).map(str::to_owned);
    let line = lost(&text).unwrap_or_else(|| panic!("no loss in: {text}"));
    assert!(line.contains("to 50, ") && !line.contains("; 0 can still be read"), "{line}");
    assert_eq!(lost(&planned), Some(line));
    let engine = Engine::start(&arguments, &[]);
    let left: u32 = engine.cli(&["DBSIZE"]).parse().unwrap();
    assert!((10..50).contains(&left), "{left}");
    let (well, text) = output(&["check", "--dir", "/no/such/folder"]);
    assert!(!well && text.contains("no journal in"), "{text}");
}
