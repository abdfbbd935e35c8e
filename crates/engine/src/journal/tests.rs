//! Tests of the whole journal: on a faulty disk in memory, on a real disk under `kill -9`, with damaged
//! files.
//!
//! The model: record n has the payload `payload(n)`; a snapshot at position P has the items `item(1) …
//! item(P)`. So a replay must always give 1, 2, 3 … n without a gap. The tests check how large n is and
//! that every payload is right.

mod crash;
mod damage;
mod disk_errors;
pub(crate) mod faulty_disk;
mod fuzz;
mod kill;
mod repairs;
mod speed;
mod written;

use std::{sync::Arc, time::Duration};

use super::*;
use faulty_disk::FaultyDisk;

const LONG: Duration = Duration::from_secs(20);

/// Waiting for syncs, which only tests do: the server reacts to [`Event::Durable`].
trait WaitForSync {
    /// Waits until a record survives a power cut.
    fn wait_durable(&self, position: Position, timeout: Duration) -> Result<(), Error>;
    /// Syncs all records appended so far, under any policy.
    fn sync(&self, timeout: Duration) -> Result<Position, Error>;
}

impl WaitForSync for Watch {
    fn wait_durable(&self, position: Position, timeout: Duration) -> Result<(), Error> {
        let deadline = std::time::Instant::now() + timeout;
        loop {
            match self.state() {
                _ if self.durable() >= position => return Ok(()),
                State::Failed(reason) => return Err(Error::Stopped(reason)),
                _ if std::time::Instant::now() > deadline => {
                    return Err(Error::Stopped("not durable in time".into()));
                }
                _ => std::thread::yield_now(),
            }
        }
    }

    fn sync(&self, timeout: Duration) -> Result<Position, Error> {
        let position = self.shared.request_sync();
        self.wait_durable(position, timeout)?;
        Ok(position)
    }
}

fn payload(n: u64) -> Vec<u8> {
    // All sizes, also 0, and sometimes more than one piece of a torn write.
    let size = match n % 23 {
        0 => 0,
        7 => 3000,
        r => (r * 13) as usize,
    };
    n.to_le_bytes().into_iter().cycle().skip((n % 3) as usize).take(size).collect()
}

fn item(n: u64) -> Vec<u8> {
    let mut item = n.to_le_bytes().to_vec();
    item.extend(payload(n));
    item
}

fn with(fsync: Fsync) -> Config {
    Config { fsync, ..Config::default() }
}

/// Checks that a replay is 1, 2, 3 … and counts it.
#[derive(Debug, Default)]
struct Model {
    last: u64,
}

impl Model {
    fn visit(&mut self, replayed: Replayed<'_>) -> Result<(), BoxError> {
        self.last += 1;
        match replayed {
            Replayed::Item(bytes) => assert_eq!(bytes, item(self.last), "item {}", self.last),
            Replayed::Record(position, bytes) => {
                assert_eq!(position, Position(self.last));
                assert_eq!(bytes, payload(self.last), "record {}", self.last);
            }
        }
        Ok(())
    }
}

fn open(disk: &FaultyDisk, config: &Config) -> Result<(Journal, u64, Opened), Error> {
    let mut model = Model::default();
    let (journal, opened) =
        Journal::open_on(Arc::new(disk.clone()), config, None, &mut |r| model.visit(r))?;
    assert_eq!(opened.contents.last, model.last);
    Ok((journal, model.last, opened))
}

fn append(journal: &mut Journal, from: u64, to: u64) {
    for n in from..=to {
        assert_eq!(journal.append(&payload(n)).unwrap(), Position(n));
    }
}

fn feed(compaction: &mut Compaction) -> Result<(), Error> {
    for n in 1..=compaction.position().0 {
        compaction.begin_key();
        compaction.feed(&item(n))?;
    }
    Ok(())
}

/// A cleanly closed journal with a snapshot, a sealed segment and an open one: records 1 to 60.
fn sample() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
    append(&mut journal, 1, 20);
    let mut compaction = journal.begin_compaction().unwrap();
    append(&mut journal, 21, 30);
    feed(&mut compaction).unwrap();
    assert!(matches!(compaction.finish().wait(LONG), Progress::Done(_)));
    append(&mut journal, 31, 40);
    drop(journal.begin_compaction().unwrap());
    append(&mut journal, 41, 60);
    journal.close().unwrap();
    assert_eq!(disk.list().unwrap().len(), 4, "{:?}", disk.list());
    disk
}

/// Repairs to the state of one moment, or is refused.
fn repair(disk: &FaultyDisk) -> Result<Repaired, Error> {
    repair::repair_on(disk, RepairRule::Moment, &|_| None)
}

fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + LONG;
    while !is_true() {
        assert!(std::time::Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}
