//! The first pass: writes what the walk reads, many commands in one round trip.

use redis::{Cmd, Pipeline, cmd};

use super::Kind;
use super::piece::{Key, Piece, StreamState};
use super::server::Server;
use super::walk::{Place, Sink};
use crate::Error;

/// Most commands sent in one round trip.
const BATCH: usize = 1000;
/// Most bytes sent in one round trip.
const BATCH_BYTES: usize = 1 << 20;

const NOTHING: &[&str] = &[];

/// Writes to the selected database of the target.
pub(super) struct Writer<'a> {
    target: &'a mut Server,
    pipe: Pipeline,
    bytes: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(target: &'a mut Server) -> Self {
        Self { target, pipe: Pipeline::new(), bytes: 0 }
    }

    fn add(&mut self, command: Cmd) {
        self.bytes += command
            .args_iter()
            .map(|arg| match arg {
                redis::Arg::Simple(bytes) => bytes.len() + 16,
                _ => 16,
            })
            .sum::<usize>();
        self.pipe.add_command(command).ignore();
    }

    /// A stream without entries exists only after one was added; trimming leaves no trace of it.
    fn add_empty_stream(&mut self, key: &[u8]) {
        self.add(words("XADD", key, &["MAXLEN", "0", "0-1", "x", "x"]));
    }
}

impl Sink for Writer<'_> {
    async fn piece(&mut self, key: &Key, place: Place, piece: Piece) -> Result<(), Error> {
        let name = key.name.as_slice();
        if place == Place::First && key.kind != Kind::String {
            // The walk may show a key twice.
            self.add(words("DEL", name, NOTHING));
        }
        match &piece {
            Piece::Bytes(0, bytes) => self.add(words("SET", name, &[bytes])),
            Piece::Bytes(_, bytes) => self.add(words("APPEND", name, &[bytes])),
            Piece::Fields(fields) => self.add(words("HSET", name, fields)),
            Piece::Items(_, items) => self.add(words("RPUSH", name, items)),
            Piece::Members(members) => self.add(words("SADD", name, members)),
            Piece::Scores(pairs) => {
                let mut command = cmd("ZADD");
                command.arg(name);
                for pair in pairs.chunks_exact(2) {
                    command.arg(&pair[1]).arg(&pair[0]);
                }
                self.add(command);
            }
            Piece::Entries(entries) if entries.is_empty() => self.add_empty_stream(name),
            Piece::Entries(entries) => {
                for (id, fields) in entries {
                    let mut command = words("XADD", name, &[id]);
                    command.arg(fields);
                    self.add(command);
                }
            }
        }
        if self.pipe.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn end(&mut self, key: &Key, stream: Option<&StreamState>) -> Result<(), Error> {
        if let Some(state) = stream {
            self.add(words(
                "XSETID",
                &key.name,
                &[
                    state.last_id.as_slice(),
                    b"ENTRIESADDED",
                    &state.entries_added,
                    b"MAXDELETEDID",
                    &state.max_deleted_id,
                ],
            ));
        }
        if let Some(expires_ms) = key.expires_ms {
            self.add(words("PEXPIREAT", &key.name, &[expires_ms.to_string()]));
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Error> {
        if !self.pipe.is_empty() {
            let pipe = std::mem::take(&mut self.pipe);
            self.bytes = 0;
            self.target.ask_all::<()>(&pipe).await?;
        }
        Ok(())
    }
}

fn words(name: &str, key: &[u8], rest: &[impl AsRef<[u8]>]) -> Cmd {
    let mut command = cmd(name);
    command.arg(key);
    for word in rest {
        command.arg(word.as_ref());
    }
    command
}
