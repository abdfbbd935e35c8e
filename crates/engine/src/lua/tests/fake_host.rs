//! A host for scripts with a few commands, which reply as Redis does.

use std::collections::{BTreeMap, VecDeque};

use crate::lua::host::Level;
use crate::lua::{self, Access, Host};
use crate::reply::Reply;
use bytes::Bytes;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[derive(Debug, Clone)]
enum Value {
    String(Bytes),
    List(VecDeque<Bytes>),
    Hash(Vec<(Bytes, Bytes)>),
}

/// Keys and values, and a record of calls.
#[derive(Debug)]
pub(crate) struct FakeHost {
    data: BTreeMap<Bytes, Value>,
    access: Access,
    wrote: bool,
    pub(crate) calls: usize,
    pub(crate) logged: Vec<(Level, String)>,
}

impl Default for FakeHost {
    fn default() -> Self {
        Self {
            data: BTreeMap::new(),
            access: Access::Write,
            wrote: false,
            calls: 0,
            logged: Vec::new(),
        }
    }
}

/// Name, arity (negative: at least), and whether the command writes.
const COMMANDS: [(&str, i32, bool); 19] = [
    ("ping", -1, false),
    ("echo", 2, false),
    ("get", 2, false),
    ("set", 3, true),
    ("incr", 2, true),
    ("incrby", 3, true),
    ("del", -2, true),
    ("exists", -2, false),
    ("type", 2, false),
    ("mget", -2, false),
    ("lpush", -3, true),
    ("rpush", -3, true),
    ("lrange", 4, false),
    ("llen", 2, false),
    ("lpop", 2, true),
    ("hset", -4, true),
    ("hget", 3, false),
    ("hgetall", 2, false),
    ("panic", 1, false),
];

impl Host for FakeHost {
    fn call(&mut self, args: &[Bytes], reply: &mut Reply) {
        self.calls += 1;
        let name = String::from_utf8_lossy(&args[0]).to_ascii_lowercase();
        if ["eval", "evalsha", "script", "subscribe", "multi"].contains(&name.as_str()) {
            return reply.error(lua::NOT_ALLOWED);
        }
        let Some((_, arity, writes)) = COMMANDS.iter().find(|command| command.0 == name) else {
            return reply.error(lua::UNKNOWN_COMMAND);
        };
        let given = args.len() as i32;
        if (*arity > 0 && given != *arity) || given < -arity {
            return reply.error(lua::WRONG_ARITY);
        }
        if *writes && self.access == Access::ReadOnly {
            return reply.error(lua::WRITE_REFUSED);
        }
        self.wrote |= writes;
        if let Err(error) = self.perform(&name, &args[1..], reply) {
            reply.error(error);
        }
    }

    fn begin(&mut self, access: Access) {
        self.access = access;
        self.wrote = false;
    }

    fn has_written(&self) -> bool {
        self.wrote
    }

    fn knows(&self, command: &[u8]) -> bool {
        COMMANDS.iter().any(|known| known.0.as_bytes().eq_ignore_ascii_case(command))
    }

    fn log(&mut self, level: Level, text: &[u8]) {
        self.logged.push((level, String::from_utf8_lossy(text).into_owned()));
    }
}

impl FakeHost {
    fn perform(
        &mut self,
        name: &str,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Result<(), &'static str> {
        match name {
            "ping" => match args.first() {
                Some(text) => reply.bulk(text),
                None => reply.status("PONG"),
            },
            "echo" => reply.bulk(&args[0]),
            "get" => match self.string(&args[0])? {
                Some(value) => reply.bulk(&value),
                None => reply.nil(),
            },
            "set" => {
                self.data.insert(args[0].clone(), Value::String(args[1].clone()));
                reply.ok();
            }
            "incr" | "incrby" => {
                let number = |text: &Bytes| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
                let bad = "ERR value is not an integer or out of range";
                let by = args.get(1).map_or(Some(1), number).ok_or(bad)?;
                let old =
                    self.string(&args[0])?.map_or(Some(0), |text| number(&text)).ok_or(bad)?;
                let new = old + by;
                self.data.insert(args[0].clone(), Value::String(Bytes::from(new.to_string())));
                reply.int(new);
            }
            "del" => {
                reply.int(args.iter().filter(|key| self.data.remove(*key).is_some()).count() as i64)
            }
            "exists" => {
                reply.int(args.iter().filter(|key| self.data.contains_key(*key)).count() as i64)
            }
            "type" => reply.status(match self.data.get(&args[0]) {
                None => "none",
                Some(Value::String(_)) => "string",
                Some(Value::List(_)) => "list",
                Some(Value::Hash(_)) => "hash",
            }),
            "mget" => {
                reply.array(args.len());
                for key in args {
                    match self.data.get(key) {
                        Some(Value::String(value)) => reply.bulk(value),
                        _ => reply.nil(),
                    }
                }
            }
            "panic" => panic!("the host fails on purpose"),
            "hset" | "hget" | "hgetall" => self.hash(name, args, reply)?,
            _ => self.list(name, args, reply)?,
        }
        Ok(())
    }

    fn string(&self, key: &Bytes) -> Result<Option<Bytes>, &'static str> {
        match self.data.get(key) {
            None => Ok(None),
            Some(Value::String(value)) => Ok(Some(value.clone())),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    fn hash(&mut self, name: &str, args: &[Bytes], reply: &mut Reply) -> Result<(), &'static str> {
        let new = Value::Hash(Vec::new());
        let hash = match self.data.entry(args[0].clone()).or_insert(new) {
            Value::Hash(hash) => hash,
            _ => return Err(WRONG_TYPE),
        };
        match name {
            "hset" => {
                let before = hash.len();
                for pair in args[1..].chunks_exact(2) {
                    match hash.iter_mut().find(|entry| entry.0 == pair[0]) {
                        Some(entry) => entry.1 = pair[1].clone(),
                        None => hash.push((pair[0].clone(), pair[1].clone())),
                    }
                }
                reply.int((hash.len() - before) as i64);
            }
            "hget" => match hash.iter().find(|entry| entry.0 == args[1]) {
                Some(entry) => reply.bulk(&entry.1),
                None => reply.nil(),
            },
            _ => {
                reply.map(hash.len());
                for (field, value) in hash.iter() {
                    reply.bulk(field);
                    reply.bulk(value);
                }
            }
        }
        if hash.is_empty() {
            self.data.remove(&args[0]);
        }
        Ok(())
    }

    fn list(&mut self, name: &str, args: &[Bytes], reply: &mut Reply) -> Result<(), &'static str> {
        let new = Value::List(VecDeque::new());
        let list = match self.data.entry(args[0].clone()).or_insert(new) {
            Value::List(list) => list,
            _ => return Err(WRONG_TYPE),
        };
        match name {
            "lpush" | "rpush" => {
                for value in &args[1..] {
                    if name == "lpush" {
                        list.push_front(value.clone());
                    } else {
                        list.push_back(value.clone());
                    }
                }
                reply.int(list.len() as i64);
            }
            "llen" => reply.int(list.len() as i64),
            "lpop" => match list.pop_front() {
                Some(value) => reply.bulk(&value),
                None => reply.nil(),
            },
            _ => {
                let index = |text: &Bytes| -> i64 {
                    let value: i64 = String::from_utf8_lossy(text).parse().unwrap_or(0);
                    if value < 0 { value + list.len() as i64 } else { value }
                };
                let from = index(&args[1]).max(0) as usize;
                let to = (index(&args[2]) + 1).max(0) as usize;
                let found: Vec<_> = list.iter().take(to).skip(from).collect();
                reply.array(found.len());
                for value in found {
                    reply.bulk(value);
                }
            }
        }
        if list.is_empty() {
            self.data.remove(&args[0]);
        }
        Ok(())
    }
}
