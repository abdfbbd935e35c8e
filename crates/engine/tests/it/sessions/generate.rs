//! Generates random sessions from a seed.
//!
//! There are six clients. Client 0 never blocks, subscribes or leaves a transaction open, so it can always
//! run commands. Clients 1 to 3 do everything; 4 and 5 mostly subscribe. The odd ones begin with RESP 3.
//!
//! Keys that clients block on (`q` lists, `w` sorted sets, `e` streams) are separate from those of
//! `crate::generate`, and mostly empty. Cases where Redis 7.0 differs from the engine are avoided:
//! - `w3` is always a sorted set: `ZUNIONSTORE` onto another type wakes no client in Redis 7.0.
//! - There is no empty stream among `e`: Redis 7.0 answers `XREAD` with it if its last id is new.
//! - There is no inline request with a NUL, which Redis does not answer.

use std::collections::VecDeque;
use std::rc::Rc;

use super::scripts::{Script, script};
use super::step::{Action, Command, ID_OF, Step};
use crate::generate::Generator;

pub(crate) const CLIENTS: usize = 6;

#[rustfmt::skip]
const WAITING: &[&str] = &[
    "BLPOP {q1|q2|q3}+ 0", "BLPOP {q1|q2} 0", "BRPOP {q1|q2|q3} {q1|q2} 0", "BLMOVE {q1|q2} {q2|q3} {LEFT|RIGHT} {LEFT|RIGHT} 0",
    "BLMOVE q1 q1 LEFT RIGHT 0", "BRPOPLPUSH {q1|q2} {q2|q3|w1} 0", "BLMPOP 0 2 {q1|q2} {q2|q3} {LEFT|RIGHT} [COUNT {1|2|3}]",
    "BZPOPMIN {w1|w2|w3}+ 0", "BZPOPMAX {w3|w1} 0", "BZPOPMAX {w1|w2} 0", "BZMPOP 0 2 w1 w2 {MIN|MAX} [COUNT 2]", "BZPOPMIN w1 0",
    "XREAD [COUNT {1|2}] BLOCK 0 STREAMS {e1|e2} {$|0|<id>}", "XREAD BLOCK 0 STREAMS e1 e2 $ $", "XREAD BLOCK 0 STREAMS e1 $",
    "BLPOP {w1|e1|s1|q1} 0", "BZPOPMIN {q1|e1|w1} 0",
    "XREADGROUP GROUP {g1|g2} {c1|c2} [COUNT {1|2}] BLOCK 0 [NOACK] STREAMS {e1|e2} >", "XREADGROUP GROUP g1 {c1|c2} BLOCK 0 STREAMS e1 >", "XREADGROUP GROUP g1 c1 BLOCK 0 STREAMS e1 e2 > >",
    "XREADGROUP GROUP g1 c3 BLOCK 0 STREAMS {e1|e2} >", "XREADGROUP BLOCK 0 GROUP {g1|g3} c1 STREAMS {e1|q1|w1} {>|0}",
];

#[rustfmt::skip]
const FEEDING: &[&str] = &[
    "RPUSH {q1|q2|q3} <m>+", "LPUSH {q1|q2|q3} <m>+", "RPUSH {q1|q2} a b c", "RPUSH q1 <m>", "LPUSHX {q1|q2} x", "LPOP {q1|q2|q3} [2]", "RPOP {q1|q2}",
    "DEL {q1|q2|q3|w1|w2|e1|e2}", "DEL q1 q2 q3", "LMOVE {q1|q2|l1} {q2|q1|q3} LEFT RIGHT", "RPOPLPUSH {q1|l1} {q2|q3}", "LRANGE {q1|q2|q3} 0 -1",
    "RENAME {l1|l2|q1|q2} {q1|q2|q3}", "RENAME {z1|w1|w2} {w1|w2}", "COPY {l1|q1|q2} {q1|q2|q3} [REPLACE]", "COPY z1 {w1|q1} REPLACE", "RENAMENX l2 q3", "RENAMENX z2 w2",
    "ZADD {w1|w2} (<score> <m>)+", "ZADD w1 {1|2|3} {a|b|c}", "ZINCRBY {w1|w2} 1 a", "ZPOPMIN {w1|w2}", "ZRANGESTORE w3 z1 0 1", "ZUNIONSTORE w3 2 z1 w2", "ZADD w3 <score> <m>", "DEL w3", "ZREM w1 a b c", "ZRANGE {w1|w2} 0 -1",
    "XADD {e1|e2} <newid> f <v>", "XADD {e1|e2} <newid> f <v>", "XADD e1 MAXLEN 2 <newid> f v", "XADD e2 NOMKSTREAM <newid> f v", "XTRIM e1 MAXLEN 1", "RENAME e1 e2", "XLEN e1",
    "SET {q1|w1|e1} v", "HSET {q2|w1} f v", "SADD {q3|e2} a", "LTRIM q1 0 0", "LINSERT q1 BEFORE a z", "MOVE {q1|l1|w1} 1", "EXISTS q1 q2 q3 w1 w2 e1 e2", "TYPE {q1|w1|e1}",
    "XGROUP CREATE {e1|e2} {g1|g2} {$|0} MKSTREAM", "XGROUP CREATE e1 g1 $ MKSTREAM", "XGROUP CREATE e2 g1 $ MKSTREAM", "XGROUP CREATE {e1|e2} {g1|g2} 0", "XGROUP DESTROY {e1|e2} {g1|g2}", "XGROUP SETID {e1|e2} {g1|g2} {0|$}",
    "XGROUP DELCONSUMER {e1|e2} g1 {c1|c2}", "XACK {e1|e2} {g1|g2} <id>+", "XREADGROUP GROUP {g1|g2} {c1|c2} COUNT 2 STREAMS {e1|e2} {>|0}", "XAUTOCLAIM {e1|e2} {g1|g2} c3 0 0 [COUNT 2] [JUSTID]", "XCLAIM {e1|e2} g1 c2 0 <id> [FORCE]", "XPENDING {e1|e2} g1",
    "XADD {e1|e2} <newid> f <v>", "PEXPIRE {q1|w1} 100000000", "PERSIST e1", "PERSIST q1", "LMPOP 2 q1 q2 LEFT COUNT 2", "ZMPOP 1 w1 MIN",
];

#[rustfmt::skip]
const CHANNELS: &[&str] = &[
    "SUBSCRIBE {c1|c2|c3}", "SUBSCRIBE {c1|c2|c3}+", "UNSUBSCRIBE {c1|c2|c3}", "UNSUBSCRIBE", "PSUBSCRIBE {c*|c?|*|?1}", "PSUBSCRIBE {c*|c?|*|?1}+",
    "PUNSUBSCRIBE {c*|c?|*|?1}+", "PUNSUBSCRIBE", "SUBSCRIBE", "PING", "PING <v>", "PING a b", "GET s1", "CLIENT ID", "PUBLISH c1 self", "ECHO <v>", "UNSUBSCRIBE {c1|nope}+",
];

#[rustfmt::skip]
const PUBLISHING: &[&str] = &[
    "PUBLISH {c1|c2|c3|other} <v>", "PUBLISH c1 <m>", "PUBLISH c1", "PUBSUB CHANNELS [{c*|c1|nope}]", "PUBSUB NUMSUB {c1|c2|nope}+", "PUBSUB NUMSUB", "PUBSUB NUMPAT",
    "PUBSUB NOPE", "PUBSUB", "PUBSUB CHANNELS a b", "PUBSUB NUMPAT x", "PUBSUB SHARDCHANNELS", "PUBSUB SHARDNUMSUB c1",
];

#[rustfmt::skip]
const ABOUT_CLIENTS: &[&str] = &[
    "CLIENT SETNAME {n1|n2|worker:1}", "CLIENT SETNAME <v>", "CLIENT GETNAME", "CLIENT ID", "CLIENT INFO", "CLIENT LIST", "CLIENT LIST", "CLIENT LIST TYPE {normal|pubsub|nope|replica|master}",
    "CLIENT LIST ID {#1|#2|#3}+", "CLIENT LIST ID {abc|0|999999}", "CLIENT LIST NOPE", "CLIENT LIST ID", "CLIENT GETREDIR", "CLIENT NOPE", "CLIENT", "CLIENT ID x", "CLIENT SETNAME", "CLIENT GETNAME x",
    "CLIENT NO-EVICT {on|off|nope}", "CLIENT UNBLOCK {0|abc|999999}", "CLIENT UNBLOCK {#1|#2|#3|#4} [{TIMEOUT|ERROR|NOPE}]", "CLIENT UNBLOCK", "CLIENT REPLY NOPE", "CLIENT REPLY ON", "CLIENT KILL", "CLIENT KILL nope",
    "CLIENT KILL ID {0|abc|-1|999999}", "CLIENT KILL TYPE nope", "CLIENT KILL ID #1 SKIPME", "CLIENT KILL ADDR 1.2.3.4:5", "CLIENT KILL USER nobody", "CLIENT KILL NOPE x", "CLIENT KILL ID #2 SKIPME maybe",
    "HELLO", "HELLO 2", "HELLO 3", "HELLO {2|3|4|1|abc|-1} [SETNAME {n1|n2|<v>}] [AUTH {default|bob} {x|y}] [{NOPE|AUTH a|SETNAME}]", "AUTH x", "AUTH {default|bob} x", "AUTH", "AUTH a b c",
    "RESET", "RESET x", "SELECT {0|1|2}", "SELECT 0", "PING [<v>]", "ECHO <v>", "NOSUCH <v>+", "WAIT 0 0", "LASTSAVE", "ROLE", "SLOWLOG LEN", "SLOWLOG RESET", "SLOWLOG GET {abc|-2|0}", "SLOWLOG NOPE", "SLOWLOG",
    "CONFIG GET {maxmemory-policy|appendonlyx|databases|MAXMEMORY}", "CONFIG GET", "CONFIG SET nosuch 1", "CONFIG SET", "CONFIG NOPE", "CONFIG RESETSTAT", "CONFIG SET maxmemory-policy noeviction", "CONFIG GET databases maxmemory-policy",
    "SCRIPT NOPE", "SCRIPT LOAD", "SCRIPT EXISTS", "SCRIPT KILL", "SCRIPT FLUSH {SYNC|ASYNC|NOPE}", "SCRIPT LOAD return", "SCRIPT LOAD end", "EVAL", "EVALSHA abc 0", "EVALSHA 0123456789012345678901234567890123456789 {0|1|abc} x", "MULTI x", "EXEC x", "DISCARD x", "WATCH",
    "WAIT {abc|0} {abc|-1|0}", "MONITOR x", "COMMAND INFO nosuch", "INFO [{server|nosuch}]", "COMMAND NOPE", "UNWATCH x", "QUIT x y", "DBSIZE",
];

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "EXEC", "EXEC", "DISCARD", "WATCH <k>+", "WATCH {q1|w1|e1}+", "WATCH <k>", "UNWATCH",
];

/// Inline commands, and bytes that are no request, with the number of their replies.
#[rustfmt::skip]
const RAW: &[(&str, usize)] = &[
    ("PING\r\n", 1), ("ping  hello\n", 1), ("SET k \"a \\x41\\n b\"\r\nGET k\r\n", 2), ("\r\n\r\nPING\r\n", 1), ("*0\r\nPING\r\n", 1), ("*-1\r\n*-5\r\nPING\r\n", 1), ("*1\r\n$4\r\nPING\r\n*1\r\n$0\r\n\r\n", 2),
    ("SET k 'it\\'s'\r\nGET k\r\n", 2), ("GET \"k\r\n", 1), ("GET 'k'x\r\n", 1), ("*1\r\n+PING\r\n", 1), ("*x\r\n", 1), ("*1\r\n$-1\r\n", 1), ("*1\r\n$536870913\r\n", 1), ("*1\r\n$99999999999\r\n", 1), ("*2147483648\r\n", 1), ("*1048577\r\n$x\r\n", 1),
    ("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n", 2), ("*1\r\n$04\r\nPING\r\n", 1), ("*+1\r\n$4\r\nPING\r\n", 1), ("* 1\r\n", 1), ("*1\r\n$ 4\r\n", 1), ("PING\r\n*1\r\n!\r\n", 2), ("\"PING\"\r\n", 1), ("\"\"\r\n", 1), ("*\r\n", 1), ("*1\r\n$\r\n", 1),
    ("*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", 2), ("ECHO \"\\t\\q\\xzz\"\r\n", 1), ("  PING  \r\n", 1), ("PING\t\x0bx\r\n", 1), ("*1\n$4\r\nPING\r\n", 1),
];

pub(crate) struct Sessions {
    generator: Generator,
    scripts: VecDeque<Script>,
}

/// The steps of a session.
pub(crate) fn session(seed: u64, count: usize) -> Vec<Step> {
    let mut sessions = Sessions { generator: Generator::new(seed), scripts: VecDeque::new() };
    let hello = |client| Step {
        client,
        action: Action::Send(vec![Rc::new(Command::words("HELLO 3"))]),
        while_waiting: false,
    };
    let mut steps: Vec<Step> = (1..CLIENTS).step_by(2).map(hello).collect();
    steps.extend((0..count).map(|_| sessions.step()));
    steps
}

impl Sessions {
    fn step(&mut self) -> Step {
        let while_waiting = self.generator.below(4) == 0;
        let worker = 1 + self.generator.below(3);
        let anyone = self.generator.below(5);
        let (client, commands) = match self.generator.below(100) {
            0..24 => return self.plain(anyone, while_waiting),
            24..42 => (anyone, self.several(FEEDING, 3)),
            42..54 => (worker + self.generator.below(2), self.several(WAITING, 1)),
            54..66 => (anyone, self.scripts()),
            66..71 => (anyone, self.transaction()),
            71..78 => (worker, self.piece_of_transaction()),
            78..85 => {
                let listener =
                    if self.generator.below(8) == 0 { worker } else { 4 + self.generator.below(2) };
                (listener, self.several(CHANNELS, 2))
            }
            85..88 => (anyone, self.several(PUBLISHING, 2)),
            88..92 => (self.generator.below(CLIENTS), self.several(ABOUT_CLIENTS, 2)),
            92..96 => (0, vec![self.unblock()]),
            96 => (0, self.without_replies()),
            97 => {
                let (text, replies) = self.generator.pick(RAW);
                let raw = Command { raw: Some(text.as_bytes().to_vec()), ..Command::default() };
                (worker, vec![raw.with_replies(replies)])
            }
            98 => return self.leaving(worker),
            _ => return self.expiring(),
        };
        let action = Action::Send(commands.into_iter().map(Rc::new).collect());
        Step { client, action, while_waiting }
    }

    fn made_from(&mut self, templates: &[&str]) -> Command {
        let template = self.generator.pick(templates);
        let mut args = self.generator.made_from(template);
        for arg in &mut args {
            if let [b'#', digit] = arg[..] {
                *arg = [ID_OF, &[digit]].concat();
            }
        }
        Command::new(args)
    }

    fn several(&mut self, templates: &[&str], most: usize) -> Vec<Command> {
        (0..1 + self.generator.below(most)).map(|_| self.made_from(templates)).collect()
    }

    /// Keyspace commands; none whose reply depends on the clock.
    fn keyspace(&mut self) -> Vec<Command> {
        loop {
            let step = self.generator.step();
            let uncertain = step.commands.iter().any(|args| args.iter().any(|arg| arg == b"*"));
            if !step.pause && !uncertain && step.commands.len() < 40 {
                return step.commands.into_iter().map(Command::new).collect();
            }
        }
    }

    fn plain(&mut self, client: usize, while_waiting: bool) -> Step {
        let turns = 1 + self.generator.below(6);
        let commands = (0..turns).flat_map(|_| self.keyspace()).map(Rc::new).collect();
        Step { client, action: Action::Send(commands), while_waiting }
    }

    fn scripts(&mut self) -> Vec<Command> {
        let known = self.scripts.len();
        let old = (known > 0 && self.generator.below(3) == 0).then(|| self.generator.below(known));
        let script = match old {
            Some(index) => self.scripts[index].clone(),
            None => {
                let others = [FEEDING, PUBLISHING].concat();
                script(&mut self.generator, &others)
            }
        };
        let sha = script.sha();
        let eval = |name: &str, what: &[u8]| {
            let head = [name.as_bytes().to_vec(), what.to_vec()];
            Command::new(head.into_iter().chain(script.rest.iter().cloned()).collect())
        };
        let commands = match self.generator.below(12) {
            0 => vec![eval("EVALSHA", &sha)],
            1 => vec![eval("EVAL_RO", &script.text)],
            2 => vec![eval("EVALSHA_RO", &sha)],
            3 => vec![
                Command::new(vec![b"SCRIPT".to_vec(), b"LOAD".to_vec(), script.text.clone()]),
                eval("EVALSHA", &sha),
            ],
            4 => vec![
                Command::new(vec![
                    b"SCRIPT".to_vec(),
                    b"EXISTS".to_vec(),
                    sha.clone(),
                    b"x".to_vec(),
                ]),
                eval("EVALSHA", &sha.to_ascii_uppercase()),
            ],
            5 if self.generator.below(4) == 0 => {
                vec![Command::words("SCRIPT FLUSH"), eval("EVALSHA", &sha)]
            }
            _ => vec![eval("EVAL", &script.text)],
        };
        if old.is_none() {
            self.scripts.push_front(script);
            self.scripts.truncate(8);
        }
        commands
    }

    /// A transaction from `MULTI` to `EXEC` in one batch.
    fn transaction(&mut self) -> Vec<Command> {
        let mut commands = vec![];
        if self.generator.below(4) == 0 {
            commands.push(self.made_from(&["WATCH <k>+", "WATCH q1", "UNWATCH"]));
        }
        commands.push(Command::words("MULTI"));
        for _ in 0..self.generator.below(6) {
            match self.generator.below(10) {
                0..4 => commands.extend(self.keyspace()),
                4..6 => commands.extend(self.several(FEEDING, 2)),
                6 => commands.extend(self.several(WAITING, 1)),
                7 => commands.extend(self.scripts()),
                8 => commands.push(self.made_from(PUBLISHING)),
                _ => commands.push(self.made_from(&[
                    "SELECT {0|1|99}",
                    "MULTI",
                    "WATCH q1",
                    "UNWATCH",
                    "CLIENT SETNAME n3",
                    "CLIENT GETNAME",
                    "PING",
                    "HELLO {2|3|9}",
                    "NOSUCH x",
                    "GET",
                    "CLIENT LIST",
                    "AUTH x",
                ])),
            }
        }
        commands.push(self.made_from(&["EXEC", "EXEC", "EXEC", "EXEC", "EXEC", "DISCARD"]));
        commands
    }

    fn piece_of_transaction(&mut self) -> Vec<Command> {
        vec![self.made_from(PIECES)]
    }

    fn unblock(&mut self) -> Command {
        self.made_from(&["CLIENT UNBLOCK {#1|#2|#3|#4} [{TIMEOUT|ERROR}]"])
    }

    fn without_replies(&mut self) -> Vec<Command> {
        let mode = self.generator.pick(&["OFF", "SKIP"]);
        let mut commands = vec![Command::words(&format!("CLIENT REPLY {mode}")).with_replies(0)];
        if mode == "SKIP" {
            commands.push(Command::words("INCR counter").with_replies(0));
            commands.push(Command::words("INCR counter"));
            return commands;
        }
        commands
            .extend(self.several(FEEDING, 3).into_iter().map(|command| command.with_replies(0)));
        commands.push(Command::words("CLIENT REPLY ON").with_replies(1));
        commands
    }

    /// A client disconnects, in one of several ways.
    fn leaving(&mut self, client: usize) -> Step {
        let commands: Vec<Rc<Command>> = match self.generator.below(3) {
            0 => self.several(FEEDING, 4),
            1 => self.several(WAITING, 1),
            _ => vec![],
        }
        .into_iter()
        .map(Rc::new)
        .collect();
        let words = |line: &str| vec![Rc::new(Command::words(line))];
        let (client, action) = match self.generator.below(8) {
            0 => (client, Action::Close),
            1 => (client, Action::Send(words("QUIT"))),
            2 => (client, Action::Send([commands, words("QUIT"), words("PING")].concat())),
            3 | 4 => {
                let command = self.made_from(&[
                    "CLIENT KILL ID {#1|#2|#3|#4|#5}",
                    "CLIENT KILL ID #2 SKIPME no",
                    "CLIENT KILL TYPE pubsub",
                ]);
                (self.generator.below(4), Action::Send(vec![Rc::new(command)]))
            }
            _ => (client, Action::SendAndHalfClose(commands)),
        };
        Step { client, action, while_waiting: true }
    }

    /// A key that expires soon, set by the client that never blocks.
    fn expiring(&mut self) -> Step {
        let command = self.made_from(&[
            "SET <k> <v> PX 2",
            "PSETEX <s> 3 <v>",
            "PEXPIRE <k> 2",
            "GETEX <s> PX 1",
            "PEXPIRE {q1|w1|e1} 2",
        ]);
        Step {
            client: 0,
            action: Action::SendAndPause(vec![Rc::new(command)]),
            while_waiting: false,
        }
    }
}

#[test]
fn every_command_of_connections_is_generated() {
    // These stop or slow down a server, or are about its disk.
    // `tests/it/monitor.rs` compares what monitors see.
    let except = ["bgrewriteaof", "debug", "shutdown", "waitaof"];
    let all = [CHANNELS, PUBLISHING, ABOUT_CLIENTS, PIECES].concat();
    let scripts = ["EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO"];
    let known: Vec<String> = all
        .iter()
        .filter_map(|template| template.split(' ').next())
        .chain(scripts)
        .map(str::to_lowercase)
        .collect();
    let missing: Vec<&str> = stampede_engine::testing::commands()
        .iter()
        .filter(|row| row.needs_connection)
        .map(|row| row.name)
        .filter(|name| !except.contains(name) && !known.iter().any(|known| known == name))
        .collect();
    assert!(missing.is_empty(), "no template for {missing:?}");
}
