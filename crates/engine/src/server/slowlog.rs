//! `SLOWLOG`: recent commands that exceeded the time threshold.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::blob::Blob;
use crate::error::{self, Result};
use crate::number::parse_int;
use crate::reply::Reply;

const MAX_ARGS: usize = 32;
const MAX_TEXT: usize = 128;

/// Slow commands, newest first.
#[derive(Debug)]
pub(super) struct Slowlog {
    entries: VecDeque<Entry>,
    next_id: i64,
    /// `slowlog-log-slower-than`, in microseconds; negative disables the log.
    pub(super) threshold_us: i64,
    /// `slowlog-max-len`.
    pub(super) max_len: usize,
}

#[derive(Debug)]
struct Entry {
    id: i64,
    at: i64,
    spent_us: i64,
    args: Vec<Vec<u8>>,
    peer: String,
    name: Blob,
}

impl Default for Slowlog {
    fn default() -> Self {
        Self { entries: VecDeque::new(), next_id: 0, threshold_us: 10_000, max_len: 128 }
    }
}

impl Slowlog {
    pub(super) fn is_slow(&self, spent: Duration) -> bool {
        self.threshold_us >= 0 && spent.as_micros() as i64 >= self.threshold_us && self.max_len > 0
    }

    pub(super) fn note(&mut self, spent: Duration, args: &[Bytes], peer: &str, name: &Blob) {
        let kept = if args.len() > MAX_ARGS { MAX_ARGS - 1 } else { args.len() };
        let mut shown: Vec<Vec<u8>> = args[..kept].iter().map(|arg| shorten(arg)).collect();
        if args.len() > kept {
            shown.push(format!("... ({} more arguments)", args.len() - kept).into_bytes());
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
        self.entries.push_front(Entry {
            id: self.next_id,
            at,
            spent_us: spent.as_micros() as i64,
            args: shown,
            peer: peer.to_owned(),
            name: name.clone(),
        });
        self.next_id += 1;
        self.entries.truncate(self.max_len);
    }

    /// `SLOWLOG` and its subcommands.
    pub(super) fn command(&mut self, args: &[Bytes], reply: &mut Reply) -> Result {
        match (args[1].to_ascii_uppercase().as_slice(), &args[2..]) {
            (b"LEN", []) => reply.int(self.entries.len() as i64),
            (b"RESET", []) => {
                self.entries.clear();
                reply.ok();
            }
            (b"GET", count @ ([] | [_])) => {
                let count = match count.first() {
                    None => 10,
                    Some(text) => parse_int(text).filter(|count| *count >= -1).ok_or(
                        error::Error::Fixed("ERR count should be greater than or equal to -1"),
                    )?,
                };
                let count = if count < 0 { usize::MAX } else { count as usize };
                let count = count.min(self.entries.len());
                reply.array(count);
                self.entries.iter().take(count).for_each(|entry| entry.write(reply));
            }
            _ => return Err(error::subcommand_syntax("slowlog", &args[1])),
        }
        Ok(())
    }
}

impl Entry {
    fn write(&self, reply: &mut Reply) {
        reply.array(6);
        reply.int(self.id);
        reply.int(self.at);
        reply.int(self.spent_us);
        reply.array(self.args.len());
        self.args.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk(self.peer.as_bytes());
        reply.bulk(&self.name);
    }
}

fn shorten(arg: &[u8]) -> Vec<u8> {
    if arg.len() <= MAX_TEXT {
        return arg.to_vec();
    }
    let more = format!("... ({} more bytes)", arg.len() - MAX_TEXT);
    [&arg[..MAX_TEXT], more.as_bytes()].concat()
}
