//! A disk in memory that tears, reorders and fails writes, as real disks may.
//!
//! ```text
//!  write ─▶ current (what a reader sees) + pending ──sync──▶ durable (what a power cut leaves)
//!
//!  power cut      every pending write is torn to pieces; each piece stays or goes, in any combination;
//!                 the same for pending names (create, rename, remove), each as a whole
//!  failed sync    the same happens to the pending writes at once, and they count as clean from then on:
//!                 `current` still shows them, but no later sync writes them (fsyncgate)
//! ```
//!
//! Operations that change the disk are counted; a fault is set for the Nth.

mod file;

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

use self::file::FaultyFile;
use crate::journal::disk::{Disk, DiskFile, Lock, LockError};

/// A fault injected at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The power fails; this operation may have happened in part.
    PowerCut,
    /// This operation fails, and the following ones, this many in all.
    Fail(u64),
}

/// The faulty disk; the header describes it.
#[derive(Debug, Clone)]
pub(crate) struct FaultyDisk {
    state: Arc<Mutex<DiskState>>,
    gate: Arc<Condvar>,
}

#[derive(Debug, Clone)]
struct DiskState {
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    pending_names: Vec<Vec<(String, Option<u64>)>>,
    files: HashMap<u64, Content>,
    next: u64,
    ops: u64,
    faults: Vec<(u64, Fault)>,
    dead: bool,
    sync_fails: bool,
    closed_gate: bool,
    /// Whether syncs hang; writes do not.
    slow_syncs: bool,
    /// The number of syncs that hang now.
    hanging_syncs: usize,
    capacity: Option<usize>,
    rng: fastrand::Rng,
}

#[derive(Debug, Clone, Default)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

fn put(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    if bytes.len() < at + piece.len() {
        bytes.resize(at + piece.len(), 0);
    }
    bytes[at..at + piece.len()].copy_from_slice(piece);
}

impl Content {
    fn settle(&mut self, rng: &mut fastrand::Rng) {
        let keep = [0.0, 0.3, 0.7, 0.95, 1.0][rng.usize(..5)];
        let pending = std::mem::take(&mut self.pending);
        // Sometimes a cut: all changes up to one, none after it.
        let cut = if rng.bool() { pending.len() } else { rng.usize(..=pending.len()) };
        for change in pending.into_iter().take(cut) {
            match change {
                Change::Truncate(length) if rng.f64() < keep => self.durable.truncate(length),
                Change::Truncate(_) => {}
                Change::Write(mut at, bytes) => {
                    let mut rest = &bytes[..];
                    while !rest.is_empty() {
                        let (piece, after) = rest.split_at(rng.usize(1..=512).min(rest.len()));
                        if rng.f64() < keep {
                            put(&mut self.durable, at, piece);
                        }
                        at += piece.len();
                        rest = after;
                    }
                }
            }
        }
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            match change {
                Change::Truncate(length) => self.durable.truncate(length),
                Change::Write(at, bytes) => put(&mut self.durable, at, &bytes),
            }
        }
    }
}

impl DiskState {
    /// Counts an operation; `Ok(true)` means that it is the last one before the power cut.
    fn step(&mut self) -> io::Result<bool> {
        if self.dead {
            return Err(io::Error::other("the power is off"));
        }
        self.ops += 1;
        for (at, fault) in &self.faults {
            match fault {
                Fault::PowerCut if self.ops == *at => {
                    self.dead = true;
                    return Ok(true);
                }
                Fault::Fail(times) if (*at..at + times).contains(&self.ops) => {
                    return Err(io::Error::other("injected fault"));
                }
                Fault::PowerCut | Fault::Fail(_) => {}
            }
        }
        Ok(false)
    }

    fn rename_all(&mut self, change: Vec<(String, Option<u64>)>, last: bool) -> io::Result<()> {
        apply(&mut self.names, &change);
        self.pending_names.push(change);
        if last { Err(io::Error::other("the power went off")) } else { Ok(()) }
    }
}

fn apply(names: &mut BTreeMap<String, u64>, change: &[(String, Option<u64>)]) {
    for (name, file) in change {
        match file {
            Some(file) => names.insert(name.clone(), *file),
            None => names.remove(name),
        };
    }
}

impl FaultyDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let state = DiskState {
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            files: HashMap::new(),
            next: 1,
            ops: 0,
            faults: Vec::new(),
            dead: false,
            sync_fails: false,
            closed_gate: false,
            slow_syncs: false,
            hanging_syncs: 0,
            capacity: None,
            rng: fastrand::Rng::with_seed(seed),
        };
        Self { state: Arc::new(Mutex::new(state)), gate: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap()
    }

    /// Waits while the gate is closed, then locks the state.
    fn pass(&self) -> MutexGuard<'_, DiskState> {
        self.gate.wait_while(self.state(), |state| state.closed_gate && !state.dead).unwrap()
    }

    /// Adds a fault, counted from now.
    pub(super) fn fault_in(&self, ops: u64, fault: Fault) {
        let mut state = self.state();
        let at = state.ops + ops;
        state.faults.push((at, fault));
    }

    pub(super) fn ops(&self) -> u64 {
        self.state().ops
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// Makes all following syncs fail, or succeed again.
    pub(super) fn fail_syncs(&self, fail: bool) {
        self.state().sync_fails = fail;
    }

    /// Makes operations on files hang while the gate is closed.
    pub(crate) fn close_gate(&self, closed: bool) {
        self.state().closed_gate = closed;
        self.gate.notify_all();
    }

    /// Makes syncs of files hang, or go on; writes are not affected.
    pub(super) fn hold_syncs(&self, hold: bool) {
        self.state().slow_syncs = hold;
        self.gate.notify_all();
    }

    /// Whether a sync hangs now.
    pub(super) fn is_syncing(&self) -> bool {
        self.state().hanging_syncs > 0
    }

    /// Limits the bytes that fit on the disk.
    pub(super) fn set_capacity(&self, bytes: Option<usize>) {
        self.state().capacity = bytes;
    }

    pub(super) fn used(&self) -> usize {
        let state = self.state();
        state.names.values().map(|file| state.files[file].current.len()).sum()
    }

    /// The disk as a process finds it after a power cut now.
    pub(super) fn after_power_cut(&self, seed: u64) -> Self {
        let mut old = self.state();
        old.dead = true;
        let mut state = old.clone();
        drop(old);
        let mut rng = fastrand::Rng::with_seed(seed);
        // Name changes are kept in order, as in journalling file systems, or in any combination.
        let (in_order, cut) = (rng.bool(), rng.usize(..=state.pending_names.len()));
        let mut names = state.durable_names;
        for (at, change) in state.pending_names.drain(..).enumerate() {
            if if in_order { at < cut } else { rng.bool() } {
                apply(&mut names, &change);
            }
        }
        for content in state.files.values_mut() {
            content.settle(&mut rng);
            content.current = content.durable.clone();
        }
        state.names = names.clone();
        state.durable_names = names;
        (state.dead, state.sync_fails, state.rng) = (false, false, rng);
        state.slow_syncs = false;
        state.faults.clear();
        Self { state: Arc::new(Mutex::new(state)), gate: Arc::default() }
    }

    /// The disk as the next process finds it after `kill -9`: unsynced data is still in the
    /// system's cache.
    pub(super) fn after_kill(&self) -> Self {
        let mut old = self.state();
        old.dead = true;
        let mut state = old.clone();
        (state.dead, state.sync_fails, state.slow_syncs) = (false, false, false);
        state.faults.clear();
        Self { state: Arc::new(Mutex::new(state)), gate: Arc::default() }
    }

    /// The bytes of a file.
    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        state.files[&state.names[name]].current.clone()
    }

    /// Puts a file on the disk, durable at once.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let file = state.next;
        state.next += 1;
        state.files.insert(
            file,
            Content { current: bytes.to_vec(), durable: bytes.to_vec(), pending: Vec::new() },
        );
        state.names.insert(name.to_owned(), file);
        state.durable_names.insert(name.to_owned(), file);
    }

    /// An independent copy of the disk.
    pub(super) fn copy(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.state().clone())), gate: Arc::default() }
    }
}

impl Disk for FaultyDisk {
    fn path(&self) -> PathBuf {
        PathBuf::from("/faulty")
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.pass();
        let last = state.step()?;
        let file = match state.names.get(name) {
            Some(file) => *file,
            None => {
                let file = state.next;
                state.next += 1;
                state.files.insert(file, Content::default());
                state.rename_all(vec![(name.to_owned(), Some(file))], last)?;
                file
            }
        };
        let content = state.files.get_mut(&file).unwrap();
        content.current.clear();
        content.pending.push(Change::Truncate(0));
        Ok(Box::new(FaultyFile { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = *self.state().names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(FaultyFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.pass();
        let last = state.step()?;
        let file = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.rename_all(vec![(from.to_owned(), None), (to.to_owned(), Some(file))], last)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.pass();
        let last = state.step()?;
        state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        state.rename_all(vec![(name.to_owned(), None)], last)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.pass();
        if state.step()? || state.sync_fails {
            return Err(io::Error::other("the directory was not synced"));
        }
        let mut names = std::mem::take(&mut state.durable_names);
        state.pending_names.drain(..).for_each(|change| apply(&mut names, &change));
        state.durable_names = names;
        Ok(())
    }

    fn lock(&self) -> Result<Lock, LockError> {
        Ok(Lock::pretend())
    }
}
