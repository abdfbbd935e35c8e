//! `maxmemory` with the policy `noeviction`: at the limit, commands that may need memory are refused.
//!
//! The memory is that of the whole process, as the kernel counts it: the keyspace does not count its
//! bytes. It is read at most every [`PERIOD`], so a burst of writes may exceed the limit by as much as
//! it writes in that time. Without a limit nothing is read.
//!
//! A compaction fills a second keyspace, which must not make writes fail. It is at most as large as the process was
//! when the compaction began; that much is not counted:
//!
//! ```text
//!   process            base ──▶ base + growth + copy (0 … base) ──▶ base + growth
//!   counted            base ──▶ at least base, at last base + growth ──▶ base + growth
//!                      └ compaction begins                     └ ends; GIVE_BACK later
//! ```

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::executor::{Executor, Next};
use super::loop_queue::ClientId;
use crate::command::{Command, GROW};
use crate::error::OUT_OF_MEMORY;
use crate::reply::Reply;

/// The interval of readings while a limit is set.
const PERIOD: Duration = Duration::from_millis(10);
/// How long the allocator may keep the memory of an ended compaction.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// The limit and the last reading.
#[derive(Debug, Default)]
pub(super) struct Memory {
    limit: u64,
    used: u64,
    read_at: Option<Instant>,
    compaction: Option<SecondKeyspace>,
}

/// The memory of a compaction that runs, or has ended a moment ago.
#[derive(Debug, Clone, Copy)]
struct SecondKeyspace {
    /// The memory of the process when the compaction began.
    base: u64,
    ended: Option<Instant>,
}

impl Memory {
    /// The limit in bytes; 0 means none.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Sets the limit in bytes; 0 means none.
    pub(super) fn set_limit(&mut self, limit: u64) {
        *self = Self { limit, compaction: self.compaction, ..Self::default() };
    }

    /// Notes that a compaction begins.
    pub(super) fn compaction_begins(&mut self) {
        self.compaction = Some(SecondKeyspace { base: resident(), ended: None });
    }

    /// Notes that the compaction has ended.
    pub(super) fn compaction_ends(&mut self) {
        if let Some(compaction) = &mut self.compaction {
            compaction.ended = Some(Instant::now());
        }
    }

    /// The memory that counts, of all memory of the process.
    fn counted(&mut self, resident: u64) -> u64 {
        let is_over =
            |one: &mut SecondKeyspace| one.ended.is_some_and(|at| at.elapsed() > GIVE_BACK);
        self.compaction.take_if(is_over);
        match self.compaction {
            Some(SecondKeyspace { base, .. }) => {
                resident.min(base.max(resident.saturating_sub(base)))
            }
            None => resident,
        }
    }

    /// Whether the process uses more memory than the limit.
    pub(super) fn is_full(&mut self) -> bool {
        if self.limit == 0 {
            return false;
        }
        let now = Instant::now();
        if self.read_at.is_none_or(|at| now.duration_since(at) >= PERIOD) {
            self.read_at = Some(now);
            self.used = self.counted(resident());
        }
        self.used > self.limit
    }
}

impl Executor {
    /// Whether a command may need memory; `EXEC` does if one of its commands does.
    pub(super) fn needs_memory(&self, client: ClientId, command: &Command) -> bool {
        let queued = || self.sessions.get(&client).and_then(|one| one.transaction.as_ref());
        let any =
            || queued().is_some_and(|all| all.queue.iter().any(|(row, _)| row.flags.has(GROW)));
        command.flags.has(GROW) || command.name == "exec" && any()
    }

    /// Refuses a command because memory is full; an open transaction is aborted.
    pub(super) fn reject_for_memory(
        &mut self,
        client: ClientId,
        command: &Command,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Next {
        self.count_rejected(args);
        if command.name == "exec" {
            self.abort_transaction(client, OUT_OF_MEMORY.text(), reply);
            return Next::Go;
        }
        if let Some(session) = self.sessions.get_mut(&client) {
            session.mark_transaction_aborted();
        }
        reply.error_bytes(OUT_OF_MEMORY.text());
        Next::Go
    }
}

/// The resident memory of the process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Parses an amount of memory as Redis does: `100`, `64k` (1000 bytes each), `64kb` (1024), up to `gb`.
pub(super) fn parse_bytes(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    // No digits at all are zero, as in Redis.
    let number = if number.is_empty() { b"0" } else { number };
    std::str::from_utf8(number).ok()?.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_units_of_redis() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1b", Some(1)),
            ("2k", Some(2000)),
            ("2Kb", Some(2048)),
            ("3mB", Some(3 << 20)),
            ("1g", Some(1_000_000_000)),
            ("1GB", Some(1 << 30)),
            ("", Some(0)),
            ("kb", Some(0)),
            ("-1", None),
            ("1t", None),
            ("18446744073709551615gb", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_bytes(text.as_bytes()), bytes, "{text}");
        }
    }

    #[test]
    fn the_second_keyspace_of_a_compaction_is_not_counted() {
        let mut memory = Memory::default();
        assert_eq!(memory.counted(1000), 1000);
        memory.compaction = Some(SecondKeyspace { base: 1000, ended: None });
        // The process, and what counts of it: the copy grows to 1000, the data by 50.
        for (resident, counted) in [(1000, 1000), (1500, 1000), (2000, 1000), (2050, 1050)] {
            assert_eq!(memory.counted(resident), counted, "{resident}");
        }
        memory.compaction_ends();
        assert_eq!(memory.counted(2050), 1050, "not given back yet");
        assert_eq!(memory.counted(900), 900);
        let long_ago = Instant::now().checked_sub(2 * GIVE_BACK);
        memory.compaction = Some(SecondKeyspace { base: 1000, ended: long_ago });
        assert_eq!(memory.counted(2050), 2050);
    }

    #[test]
    fn a_process_is_larger_than_one_byte_and_smaller_than_everything() {
        let mut memory = Memory::default();
        assert!(!memory.is_full());
        memory.set_limit(1);
        assert!(memory.is_full());
        memory.set_limit(u64::MAX);
        assert!(!memory.is_full());
    }
}
