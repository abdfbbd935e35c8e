//! The journal's directory: a full disk, a lock held by another process, a torn tail, damage.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stampede_engine::{Config, Outcome, RepairRule, Server, repair_journal};

use crate::process::{Options, Process};
use crate::wire::{Running, Value, Wire, eventually};

/// A server on a disk of this many megabytes, mostly filled by a file that can be removed.
struct SmallDisk {
    server: Process,
    ballast: PathBuf,
    _dir: tempfile::TempDir,
}

impl SmallDisk {
    fn start(policy: &str, megabytes: u64, ballast: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().display().to_string();
        let before = format!(
            "mount -t tmpfs -o size={megabytes}m none '{disk}'\n\
             head -c {ballast}m /dev/zero > '{disk}/ballast'"
        );
        let data = dir.path().join("data");
        let options =
            Options { dir: Some(&data), policy, before: Some(before), ..Options::default() };
        let server = Process::try_start(&options).unwrap_or_else(|reason| {
            panic!("this test needs namespaces (`unshare --map-root-user --mount true`): {reason}")
        });
        // The mount belongs to the child; this is its path from outside.
        let root = PathBuf::from(format!("/proc/{}/root", server.pid()));
        let ballast = root.join(dir.path().strip_prefix("/").unwrap()).join("ballast");
        Self { server, ballast, _dir: dir }
    }

    fn make_room(&self) {
        std::fs::remove_file(&self.ballast).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.ballast.with_file_name("data")
    }
}

/// A write that tells others: a message, and an entry for a client that waits.
const TELLING: &str = "redis.call('set', 'k' .. ARGV[1], ARGV[2]) redis.call('publish', 'told', ARGV[1]) \
                       redis.call('xadd', 'entries', '*', 'n', ARGV[1])";

/// Writes until the disk is full; returns the number of acknowledged writes.
///
/// The last write has happened in memory and cannot be recorded. It is not acknowledged, and its connection is closed
/// after a few seconds.
fn fill(client: &mut Wire, value: &str) -> u64 {
    for n in 0.. {
        match client.try_call(&["eval", TELLING, "0", &n.to_string(), value]) {
            Ok(Value::Error(text)) => panic!("write {n} is answered {text}"),
            Ok(_) => {}
            Err(error) => {
                assert!(!is_timeout(&error), "the reply to write {n} is held for ever");
                return n;
            }
        }
    }
    unreachable!("the disk is not endless")
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// The last write that a client is told of before its connection is closed.
fn last_told(mut client: Wire, mut next: impl FnMut(&mut Wire) -> std::io::Result<Value>) -> u64 {
    let mut last = 0;
    while let Ok(told) = next(&mut client) {
        last = told.text().rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(last);
    }
    last
}

fn full_disk(policy: &str) {
    let disk = SmallDisk::start(policy, 16, 10);
    let mut client = disk.server.connect();
    // These expire while the disk is full.
    let soon = SystemTime::now() + Duration::from_secs(8);
    let soon = soon.duration_since(UNIX_EPOCH).unwrap().as_millis().to_string();
    for n in 0..50 {
        client.call(&["set", &format!("soon{n}"), "v", "pxat", &soon]);
    }
    let value = "v".repeat(20_000);
    let (mut subscriber, waiting) = (disk.server.connect(), disk.server.connect());
    subscriber.say("subscribe told");
    let subscriber = thread::spawn(|| last_told(subscriber, Wire::read));
    let wait = ["xread", "block", "1000", "streams", "entries", "$"];
    let waiting = thread::spawn(move || last_told(waiting, |wire| wire.try_call(&wait)));
    let acknowledged = fill(&mut client, &value);
    println!("{policy}: {acknowledged} writes");
    // Another process finds every acknowledged write in a copy of what the kernel has, while the disk is full.
    let found = |keys: u64| {
        let copy = tempfile::tempdir().unwrap();
        copy_files(&disk.data(), copy.path());
        let found = Running::start(Config { dir: Some(copy.path().into()), ..Config::default() });
        let mut client = found.connect();
        let whole = |n| client.call(&["strlen", &format!("k{n}")]).int() == 20_000;
        ((0..keys).all(whole), client.say("get after") != Value::Nil)
    };
    assert!(found(acknowledged).0, "an acknowledged write is not recorded");
    // Other clients get the error too, and may read.
    let mut other = disk.server.connect();
    other.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let misconf = |reply: Value| {
        let text = reply.text();
        assert!(text.contains("MISCONF Errors writing to the journal: "), "{text}");
    };
    let refused = other.say("set x 1").text();
    assert!(refused.contains("No space left on device"), "{refused}");
    misconf(other.say("incr n"));
    assert_eq!(other.say("get k0").text(), value);
    assert_eq!(other.call(&["eval", "return #redis.call('get', 'k0')", "0"]).int(), 20_000);
    misconf(other.call(&["eval", "return redis.call('set', 'x', 1)", "0"]));
    assert_eq!(other.say("multi").text(), "OK");
    misconf(other.say("set x 1"));
    assert!(other.say("exec").text().starts_with("EXECABORT "));
    assert_eq!(other.say("get x"), Value::Nil);
    assert_eq!(other.say("ping").text(), "PONG");
    // Expired keys are gone for readers, and the journal gets no records that it must hold in memory.
    let size = |client: &mut Wire| {
        let info = client.say("info persistence").text();
        info.lines().find(|line| line.starts_with("aof_current_size:")).unwrap().to_owned()
    };
    let before = size(&mut other);
    eventually("expired", || (0..50).all(|n| other.say(&format!("get soon{n}")) == Value::Nil));
    assert_eq!(size(&mut other), before);
    let compaction = other.say("bgrewriteaof");
    assert!(matches!(compaction, Value::Error(_)), "{compaction:?}");
    // Writing resumes by itself.
    disk.make_room();
    eventually("writes are taken", || other.say("set x 2").text() == "OK");
    let mut again = disk.server.connect();
    assert_eq!(again.say("incr after").int(), 1);
    for n in 0..acknowledged {
        assert_eq!(again.call(&["strlen", &format!("k{n}")]).int(), 20_000, "k{n}");
    }
    // The write that was not acknowledged is recorded now, too.
    assert_eq!(found(acknowledged + 1), (true, true));
    disk.server.stop();
    // Nobody was told of it before; the connections of those who should have been were closed.
    assert_eq!(subscriber.join().unwrap(), acknowledged - 1, "the last message");
    assert!((1..acknowledged).contains(&waiting.join().unwrap()), "the last entry");
}

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "lock" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_is_got_over_under_everysec() {
    full_disk("everysec");
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_is_got_over_under_always() {
    full_disk("always");
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_is_got_over_under_never() {
    full_disk("never");
}

#[test]
fn a_compaction_without_room_fails_and_the_log_goes_on() {
    let disk = SmallDisk::start("everysec", 16, 7);
    let mut client = disk.server.connect();
    // 6 MB that do not shrink: log and snapshot do not fit on the disk together.
    for n in 0..300 {
        let value: String = (0..20_000).map(|_| fastrand::alphanumeric()).collect();
        assert_eq!(client.call(&["set", &format!("k{n}"), &value]).text(), "OK");
    }
    let status = |client: &mut Wire, field: &str| {
        let info = client.say("info persistence").text();
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
        line.unwrap_or_else(|| panic!("no {field} in {info}")).to_owned()
    };
    assert!(client.say("bgrewriteaof").text().contains("started"));
    eventually("the compaction has ended", || {
        client.say("ping");
        status(&mut client, "aof_rewrite_in_progress") == "0"
    });
    assert_eq!(status(&mut client, "aof_last_bgrewrite_status"), "err");
    eventually("writes are taken", || client.say("set x 1").text() == "OK");
    let files: Vec<_> = std::fs::read_dir(disk.data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!files.iter().any(|name| name.contains("snapshot")), "left behind: {files:?}");
    // With enough space the compaction succeeds.
    disk.make_room();
    assert!(client.say("bgrewriteaof").text().contains("started"));
    eventually("the compaction has ended", || {
        status(&mut client, "aof_rewrite_in_progress") == "0"
    });
    assert_eq!(status(&mut client, "aof_last_bgrewrite_status"), "ok");
    disk.server.stop();
}

fn start_on(dir: &Path) -> Result<Server, String> {
    let config = Config {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        dir: Some(dir.into()),
        ..Config::default()
    };
    Server::start(config).map_err(|error| error.to_string())
}

#[test]
fn a_second_process_is_told_who_has_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { dir: Some(dir.path()), ..Options::default() };
    let first = Process::start(&options);
    first.connect().say("set k v");
    let owner = format!("process {}", first.pid());
    let refused = Process::try_start(&options).err().unwrap();
    assert!(refused.contains(&owner) && refused.contains("in use"), "{refused}");
    let refused = start_on(dir.path()).unwrap_err();
    assert!(refused.contains(&owner), "{refused}");
    // The first process is not affected, and a dead owner does not keep the lock.
    assert_eq!(first.connect().say("get k").text(), "v");
    eventually("written", || std::fs::metadata(newest_log(dir.path())).unwrap().len() > 80);
    thread::sleep(Duration::from_millis(50));
    first.kill();
    let second = Process::start(&options);
    assert_eq!(second.connect().say("get k").text(), "v");
    second.stop();
}

#[test]
fn a_directory_of_a_newer_version_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    start_on(dir.path()).unwrap().stop().unwrap();
    let manifest = dir.path().join("manifest");
    let ours = std::fs::read_to_string(&manifest).unwrap();
    let body = ours.split("crc32c ").next().unwrap().replace("journal 2\n", "journal 3\n");
    let newer = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    assert_ne!(newer, ours);
    std::fs::write(&manifest, &newer).unwrap();
    let refused = start_on(dir.path()).unwrap_err();
    let told = "manifest has format version 3, this program reads up to 2; use a newer one";
    assert!(refused.contains(told), "{refused}");
    assert_eq!(std::fs::read_to_string(&manifest).unwrap(), newer);
}

fn newest_log(dir: &Path) -> PathBuf {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ext| ext == "log")).max().unwrap()
}

/// A directory with a thousand writes, left by a killed process.
fn killed_after_a_thousand_writes() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { dir: Some(dir.path()), policy: "always", ..Options::default() };
    let server = Process::start(&options);
    let mut client = server.connect();
    let mut batch = Vec::new();
    for n in 0..1000 {
        batch.extend(crate::wire::request(&["rpush", "list", &n.to_string()]));
    }
    client.stream.write_all(&batch).unwrap();
    (0..1000).for_each(|_| drop(client.read().unwrap()));
    // Its record carries a watermark over the records before it: only then is a hole in them
    // damage.
    client.say("set last 1");
    server.kill();
    dir
}

#[test]
fn a_torn_tail_is_cut_and_told() {
    let dir = killed_after_a_thousand_writes();
    let log = newest_log(dir.path());
    let len = std::fs::metadata(&log).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(len - 3).unwrap();
    let server = start_on(dir.path()).unwrap();
    let torn = server.opened().unwrap().contents.torn.clone().unwrap();
    assert!(torn.bytes > 0 && torn.offset + torn.bytes == len - 3, "{torn:?} of {len}");
    let left = Wire::connect(server.tcp_addr().unwrap()).say("llen list").int();
    assert_eq!(left, 1000);
    server.stop().unwrap();
    // The tail is cut only once.
    let server = start_on(dir.path()).unwrap();
    assert_eq!(server.opened().unwrap().contents.torn, None);
}

#[test]
fn damage_in_the_middle_stops_the_start_and_can_be_repaired() {
    let dir = killed_after_a_thousand_writes();
    let log = newest_log(dir.path());
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 0x10;
    std::fs::write(&log, &bytes).unwrap();
    let told = start_on(dir.path()).unwrap_err();
    let file = log.display().to_string();
    assert!(told.contains(&format!("{file} is damaged at byte ")), "{told}");
    let offset: usize =
        told.split("at byte ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(offset <= at && at - offset < 200, "{offset} for a bit at {at}");
    assert!(told.contains(&format!("stampede engine repair --dir {}", dir.path().display())));
    // Nothing was changed, and the next attempt gives the same error.
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
    assert_eq!(start_on(dir.path()).unwrap_err(), told);
    let repaired = repair_journal(dir.path(), RepairRule::Moment).unwrap();
    assert_eq!((repaired.outcome, repaired.last_seen), (Outcome::Moment, 1001));
    assert!((400..600).contains(&repaired.readable_records), "{repaired:?}");
    let server = start_on(dir.path()).unwrap();
    let mut client = Wire::connect(server.tcp_addr().unwrap());
    let left = client.say("llen list").int();
    assert!((400..600).contains(&left), "{left}");
    assert_eq!(client.say("lindex list -1").int(), left - 1);
    assert_eq!(client.say("rpush list on").int(), left + 1);
}
