//! `EVAL`, `EVALSHA`, their read-only forms and `SCRIPT`, with Redis's error texts.
//!
//! The command table has checked the arity before these functions are called.

use bytes::Bytes;

use super::host::{Access, Host};
use super::{Call, Limits, OomRule, Scripts, Source};
use crate::reply::Reply;

impl Scripts {
    /// Runs `EVAL`, `EVALSHA`, `EVAL_RO` or `EVALSHA_RO`; `args` begins with the command's name.
    pub(crate) fn eval_command(
        &mut self,
        host: &mut dyn Host,
        args: &[Bytes],
        limits: Limits,
        reply: &mut Reply,
    ) {
        let [name, script, count, rest @ ..] = args else {
            let name = args.first().map(|name| lower(name)).unwrap_or_default();
            return reply.error(&wrong_arity(&name));
        };
        let name = lower(name);
        let by_sha = name.starts_with("evalsha");
        if by_sha && script.len() != 40 {
            // Redis checks the length of the SHA-1 before anything else.
            return reply.error(super::NO_SCRIPT);
        }
        let source = if by_sha { Source::Sha(script) } else { Source::Text(script) };
        let access = if name.ends_with("_ro") { Access::ReadOnly } else { Access::Write };
        let count = std::str::from_utf8(count).ok().filter(|text| is_canonical(text));
        match count.and_then(|text| text.parse::<i64>().ok()) {
            None => reply.error("ERR value is not an integer or out of range"),
            Some(count) if count < 0 => reply.error("ERR Number of keys can't be negative"),
            Some(count) if count as usize > rest.len() => {
                reply.error("ERR Number of keys can't be greater than number of args");
            }
            Some(count) => {
                let (keys, args) = rest.split_at(count as usize);
                self.eval(host, source, Call { keys, args, access, limits }, reply);
            }
        }
    }

    /// Runs `SCRIPT` and its subcommands; `args` begins with `SCRIPT`.
    ///
    /// `SCRIPT KILL` gets here only while no script runs; otherwise the event loops handle it with
    /// [`Interrupt::kill`](super::Interrupt::kill).
    pub(crate) fn script_command(&mut self, args: &[Bytes], limits: Limits, reply: &mut Reply) {
        let Some(subcommand) = args.get(1) else { return reply.error(&wrong_arity("script")) };
        match (lower(subcommand).as_str(), &args[2..]) {
            ("load", [text]) => match self.load(text, limits) {
                Ok(sha) => reply.bulk(sha.as_bytes()),
                Err(error) => reply.error(&error),
            },
            ("exists", shas @ [_, ..]) => {
                reply.array(shas.len());
                for sha in shas {
                    reply.int(self.exists(sha).into());
                }
            }
            ("flush", options) => {
                let known = match options {
                    [] => true,
                    [mode] => matches!(lower(mode).as_str(), "sync" | "async"),
                    _ => false,
                };
                if known {
                    self.flush();
                    reply.ok();
                } else {
                    reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
                }
            }
            ("kill", []) => match self.interrupt.kill() {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(&error.to_string()),
            },
            ("help", []) => {
                reply.array(HELP.len());
                for line in HELP {
                    reply.status(line);
                }
            }
            (known @ ("load" | "exists" | "kill" | "help"), _) => {
                reply.error(&wrong_arity(&format!("script|{known}")));
            }
            _ => {
                let name = String::from_utf8_lossy(subcommand);
                reply.error(&format!("ERR unknown subcommand '{name:.128}'. Try SCRIPT HELP."));
            }
        }
    }
}

const HELP: [&str; 15] = [
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache. Very dangerous on replicas.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the scripts cache.",
    "    * SYNC: Synchronously flush the scripts cache.",
    "KILL",
    "    Kill the currently executing Lua script.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
    "HELP",
    "    Prints this help.",
];

fn lower(text: &[u8]) -> String {
    String::from_utf8_lossy(text).to_ascii_lowercase()
}

fn wrong_arity(command: &str) -> String {
    format!("ERR wrong number of arguments for '{command}' command")
}

/// Redis accepts no sign but `-`, no leading zeros and no spaces.
fn is_canonical(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    text == "0"
        || matches!(digits.as_bytes(), [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit))
}

/// The flags that a script declares in its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) access: Access,
    pub(super) oom: OomRule,
}

/// Parses `#!lua flags=…` in the first line; returns the flags it declares, if there is such a line,
/// and the text to compile.
///
/// The newline stays, so that line numbers refer to the whole text.
pub(super) fn shebang(text: &[u8]) -> Result<(Option<Declared>, &[u8]), String> {
    let Some(line) = text.strip_prefix(b"#!") else { return Ok((None, text)) };
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        return Err("ERR Invalid script shebang".to_owned());
    };
    let header = String::from_utf8_lossy(&line[..end]);
    let mut words = header.split_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "lua" {
        return Err(format!("ERR Unexpected engine in script shebang: #!{engine}"));
    }
    let (mut access, mut allows_oom) = (Access::Write, false);
    for word in words {
        let Some(flags) = word.strip_prefix("flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {word}"));
        };
        for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
            match flag {
                "no-writes" => access = Access::ReadOnly,
                "allow-oom" => allows_oom = true,
                // These flags are about clusters and replicas, which this server does not have.
                "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                _ => return Err(format!("ERR Unexpected flag in script shebang: {flag}")),
            }
        }
    }
    let runs = allows_oom || access == Access::ReadOnly;
    let oom = if runs { OomRule::Run } else { OomRule::Refuse };
    Ok((Some(Declared { access, oom }), &line[end..]))
}
