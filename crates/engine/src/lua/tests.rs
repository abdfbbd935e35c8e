//! Scripts compared with a real Redis, and their limits.

#![allow(clippy::unwrap_used)]

mod corpus;
mod fake_host;
mod limits;
mod redis_server;

use std::fmt::Write;

use crate::lua::{Access, Call, Limits, Scripts, Source};
use crate::reply::{Protocol, Reply};
use bytes::Bytes;

use self::corpus::SCRIPTS;
use self::fake_host::FakeHost;
use self::redis_server::{Client, Server};

/// The version of the redis-server that we compare with.
const VERSION: &str = "7.0.15";
const KEYS: [&str; 2] = ["k1", "k2"];
const ARGS: [&str; 4] = ["a1", "2", "3.5", ""];

fn bytes(texts: &[&str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect()
}

fn ours(scripts: &mut Scripts, script: &[u8], protocol: Protocol) -> Vec<u8> {
    let mut reply = Reply::new(protocol);
    let (keys, args) = (bytes(&KEYS), bytes(&ARGS));
    let call = Call { keys: &keys, args: &args, access: Access::Write, limits: Limits::default() };
    scripts.eval(&mut FakeHost::default(), Source::Text(script), call, &mut reply);
    reply.as_bytes().to_vec()
}

fn theirs(client: &mut Client, script: &[u8]) -> Vec<u8> {
    client.call(&[b"FLUSHALL"]);
    let mut command: Vec<&[u8]> = vec![b"EVAL", script, b"2"];
    command.extend(KEYS.iter().map(|key| key.as_bytes()));
    command.extend(ARGS.iter().map(|arg| arg.as_bytes()));
    client.call(&command)
}

/// Shortens a reply for a message.
fn shorten(reply: &[u8]) -> String {
    let text = reply.escape_ascii().to_string();
    if text.len() > 400 { format!("{}… ({} bytes)", &text[..400], reply.len()) } else { text }
}

fn compare<S: AsRef<[u8]>>(corpus: impl IntoIterator<Item = S>) {
    compare_in(Protocol::Resp2, corpus);
}

fn compare_in<S: AsRef<[u8]>>(protocol: Protocol, corpus: impl IntoIterator<Item = S>) {
    let server = Server::start();
    let mut client = server.connect();
    if protocol == Protocol::Resp3 {
        client.call(&[b"HELLO", b"3"]);
    }
    let mut scripts = Scripts::new(VERSION);
    let mut differences = String::new();
    for script in corpus {
        let script = script.as_ref();
        let (redis, engine) = (theirs(&mut client, script), ours(&mut scripts, script, protocol));
        if redis != engine {
            let script = script.escape_ascii();
            let (redis, engine) = (shorten(&redis), shorten(&engine));
            write!(differences, "\n{script}\n    redis:  {redis}\n    engine: {engine}").unwrap();
        }
    }
    let count = differences.matches("\n    redis:").count();
    assert!(differences.is_empty(), "{count} scripts differ:{differences}");
}

#[test]
fn scripts_answer_byte_for_byte_as_in_redis() {
    assert!(SCRIPTS.len() > 150);
    compare(SCRIPTS);
}

/// RESP 3 clients get the same values in RESP 3 types.
#[test]
fn scripts_answer_clients_of_resp3_as_in_redis() {
    // These have their own RESP 3 types, which `Reply` does not write yet.
    let missing = ["big_number", "verbatim_string", "redis.setresp(3) return {false, true}"];
    let written = |script: &&&str| !missing.iter().any(|missing| script.contains(missing));
    compare_in(Protocol::Resp3, SCRIPTS.iter().filter(written));
}

#[test]
fn eval_and_script_commands_answer_as_in_redis() {
    let server = Server::start();
    let mut client = server.connect();
    let (mut scripts, mut host) = (Scripts::new(VERSION), FakeHost::default());
    let commands = [
        "EVAL",
        "eval x",
        "EVAL x -1",
        "EVAL x 5",
        "EVAL x a",
        "EVAL x 1.5",
        "EVAL x +1",
        "EVAL x 01",
        "EVAL x 99999999999999999999",
        "EVAL return{KEYS,ARGV} 2 a b c d",
        "EVAL return{KEYS,ARGV} 0 a",
        "EVAL return{KEYS,ARGV} 1 a",
        "EVAL return{KEYS,ARGV} 2 a",
        "EVALSHA",
        "EVALSHA x",
        "EVALSHA x 0",
        "EVALSHA x a",
        "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
        "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db a",
        "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db -1",
        "SCRIPT LOAD return(7)",
        "SCRIPT EXISTS c7a5ee6cd4b75a0ec9fd7e3f9c3ae6fb52abb5ba x",
        "SCRIPT LOAD if",
        "SCRIPT LOAD",
        "SCRIPT LOAD a b",
        "SCRIPT",
        "SCRIPT NoSuch",
        "SCRIPT EXISTS",
        "script kill",
        "SCRIPT KILL x",
        "SCRIPT FLUSH x",
        "SCRIPT FLUSH ASYNC b",
        "SCRIPT FLUSH sync",
        "SCRIPT FLUSH",
        "EVAL_RO return(1) 0",
        "EVAL_RO redis.call('set','a','b') 0",
        "EVAL_RO return{redis.pcall('set','a','b')} 0",
        "EVALSHA_RO x 0",
        "EVAL_RO",
        "EVALSHA_RO",
    ];
    for command in commands {
        let words: Vec<Bytes> = bytes(&command.split(' ').collect::<Vec<_>>());
        let mut reply = Reply::new(Protocol::Resp2);
        if words[0].eq_ignore_ascii_case(b"script") {
            scripts.script_command(&words, Limits::default(), &mut reply);
        } else {
            scripts.eval_command(&mut host, &words, Limits::default(), &mut reply);
        }
        let theirs = client.call(&words.iter().map(|word| &word[..]).collect::<Vec<_>>());
        assert_eq!(shorten(reply.as_bytes()), shorten(&theirs), "{command}");
    }
}

#[test]
fn generated_documents_survive_cjson_and_cmsgpack_as_in_redis() {
    let mut random = fastrand::Rng::with_seed(7);
    let corpus = (0..400).map(|_| {
        let document = document(&mut random, 0);
        let text = lua_string(document.as_bytes());
        // A damaged document too: its error must name the same character.
        let mut damaged = document.into_bytes();
        if !damaged.is_empty() {
            let at = random.usize(..damaged.len());
            damaged[at] = *random.choice(b"[]{},:\"\\0x-e.tn ").unwrap();
        }
        let damaged = lua_string(&damaged);
        format!(
            "local t = cjson.decode({text}) local ok, e = pcall(cjson.decode, {damaged}) \
             local p = cmsgpack.pack(t) \
             return {{cjson.encode(t), t, p, cjson.encode(cmsgpack.unpack(p)), ok and cjson.encode(e) or e}}"
        )
    });
    compare(corpus);
}

#[test]
fn generated_patterns_match_as_in_redis() {
    let mut random = fastrand::Rng::with_seed(11);
    let items = [
        "a", "b", ".", "%a", "%d", "%s", "%w", "[ab]", "[^a]", "[a-c%d]", "%1", "()", "(", ")",
        "%b()", "%f[%w]", "$", "^", "%", "[", "]", "-", "%z", "%.", " ",
    ];
    let quantifiers = ["", "", "", "*", "+", "-", "?"];
    let corpus = (0..1500).map(|_| {
        let pattern: String = (0..random.usize(1..6))
            .map(|_| format!("{}{}", random.choice(&items).unwrap(), random.choice(&quantifiers).unwrap()))
            .collect();
        let text: String = (0..random.usize(..12)).map(|_| *random.choice(&['a', 'b', 'c', '1', ' ', '(', ')', '.']).unwrap()).collect();
        let (text, pattern) = (lua_string(text.as_bytes()), lua_string(pattern.as_bytes()));
        let from = random.i32(-4..6);
        format!(
            "local t, p = {text}, {pattern} local all = {{}} \
             local ok, e = pcall(function() for a, b in t:gmatch(p) do all[#all + 1] = tostring(a) .. tostring(b) end end) \
             return {{{{pcall(string.find, t, p, {from})}}, {{pcall(string.match, t, p)}}, all, e, \
             {{pcall(string.gsub, t, p, '<%0%1>')}}, {{pcall(string.gsub, t, p, function(c) return c == 'a' and 'x' end, 3)}}}}"
        )
    });
    compare(corpus);
}

/// A random JSON document with all kinds of values.
fn document(random: &mut fastrand::Rng, depth: usize) -> String {
    let list = |random: &mut fastrand::Rng, item: fn(&mut fastrand::Rng, usize) -> String| {
        let len = random.usize(..5);
        (0..len).map(|_| item(random, depth + 1)).collect::<Vec<_>>().join(", ")
    };
    match random.u8(..if depth < 4 { 12 } else { 8 }) {
        0 => "null".to_owned(),
        1 => random.bool().to_string(),
        2 => random.i64(..).to_string(),
        3 => random.i32(-300..300).to_string(),
        4 => format!("{:e}", f64::from_bits(random.u64(..) >> 2 | 1 << 61)),
        5 => (random.f64() * 1000.0).to_string(),
        6 | 7 => string(random),
        8 | 9 => format!("[{}]", list(random, document)),
        _ => format!(
            "{{{}}}",
            list(random, |random, depth| {
                format!("{}:{}", string(random), document(random, depth))
            })
        ),
    }
}

fn string(random: &mut fastrand::Rng) -> String {
    let parts = [
        "a",
        "key",
        "/",
        "\\n",
        "\\\"",
        "\\u00e9",
        "\\ud83d\\ude00",
        "ü",
        "\\u0001",
        " ",
        "0",
        "\\/",
        "\u{7f}",
    ];
    let len = random.usize(..6);
    let text: String = (0..len).map(|_| *random.choice(&parts).unwrap()).collect();
    format!("\"{text}\"")
}

/// Bytes as a Lua string literal.
fn lua_string(bytes: &[u8]) -> String {
    let escaped: String = bytes.iter().map(|byte| format!("\\{byte:03}")).collect();
    format!("'{escaped}'")
}

#[test]
fn all_scripts_of_bullmq_compile() {
    let cargo = std::env::var("CARGO_HOME")
        .unwrap_or_else(|_| format!("{}/.cargo", std::env::var("HOME").unwrap()));
    let registry = std::path::Path::new(&cargo).join("registry/src");
    let folder = std::fs::read_dir(&registry)
        .unwrap()
        .map(|index| index.unwrap().path().join("bullmq-official-1.4.4/src/commands"))
        .find(|folder| folder.exists())
        .expect("this test needs BullMQ's scripts; run: cargo fetch in the workspace");
    let mut scripts = Scripts::new(VERSION);
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "lua") {
            let text = std::fs::read(&path).unwrap();
            scripts
                .load(&text, Limits::default())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            count += 1;
        }
    }
    assert_eq!(count, 64);
    assert_eq!(scripts.len(), 64);
}

/// Run it alone: `cargo nextest run --release --run-ignored only -E 'test(how_long)' --no-capture`.
#[test]
#[ignore = "a measurement"]
fn how_long_a_script_with_ten_calls_takes() {
    let cases = [
        ("nothing", "return 1"),
        ("10 × get", "for i = 1, 10 do redis.call('get', KEYS[1]) end return 1"),
        ("10 × set", "for i = 1, 10 do redis.call('set', KEYS[1], ARGV[1]) end return 1"),
        (
            "10 × hset",
            "for i = 1, 10 do redis.call('hset', KEYS[1], 'field', i, 'other', ARGV[1]) end return 1",
        ),
        (
            "cjson",
            "return cjson.encode(cjson.decode('{\"a\":[1,2,3],\"b\":{\"c\":\"text\",\"d\":1.5}}'))",
        ),
        (
            "cmsgpack",
            "return cmsgpack.pack(cmsgpack.unpack('\\147\\163abc\\1\\130\\161a\\1\\161b\\2'))",
        ),
        ("plain Lua", "local s = 0 for i = 1, 1000 do s = s + i % 7 end return s"),
        (
            "strings",
            "local t = {} for i = 1, 50 do t[#t + 1] = 'k' .. i end return table.concat(t, ':')",
        ),
    ];
    let mut scripts = Scripts::new(VERSION);
    let (keys, args) = (bytes(&KEYS), bytes(&ARGS));
    for (name, text) in cases {
        let sha = scripts.load(text.as_bytes(), Limits::default()).unwrap();
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let (mut host, mut reply) = (FakeHost::default(), Reply::new(Protocol::Resp2));
            let began = std::time::Instant::now();
            let rounds = 20_000;
            for _ in 0..rounds {
                let call = Call {
                    keys: &keys,
                    args: &args,
                    access: Access::Write,
                    limits: Limits::default(),
                };
                scripts.eval(&mut host, Source::Sha(sha.as_bytes()), call, &mut reply);
                drop(reply.take());
            }
            best = best.min(began.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
        }
        println!("{name:>10}: {best:.2} µs");
    }
}
