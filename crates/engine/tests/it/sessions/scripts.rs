//! Generates random Lua scripts from a seed: they call commands, fail in the middle, and return odd
//! values.

use crate::generate::Generator;
use sha1::{Digest, Sha1};

/// Commands that scripts do not call, because their reply depends on chance, the clock or a hash
/// table.
const UNCERTAIN: [&str; 29] = [
    "SPOP",
    "SRANDMEMBER",
    "HRANDFIELD",
    "ZRANDMEMBER",
    "RANDOMKEY",
    "TIME",
    "KEYS",
    "SCAN",
    "SSCAN",
    "HSCAN",
    "ZSCAN",
    "OBJECT",
    "MEMORY",
    "TTL",
    "PTTL",
    "EXPIRETIME",
    "PEXPIRETIME",
    "XINFO",
    "SMEMBERS",
    "HGETALL",
    "HKEYS",
    "HVALS",
    "SINTER",
    "SUNION",
    "SDIFF",
    "XSETID",
    "DUMP",
    "SORT",
    "SORT_RO",
];

/// Results of scripts that do not return a command's reply.
#[rustfmt::skip]
const RESULTS: &[&str] = &[
    "return r", "return r", "return r", "return r", "return r[1]", "return r[#r]", "return {r, r, {r}}", "return #r", "",
    "return nil", "return true", "return false", "return 3.99", "return -7", "return 'text'", "return {1, {2, {3, 'x'}}, nil, 4}",
    "return {true, false, 1.5, 'a'}", "return {}", "return {err = 'MINE it is'}", "return {ok = 'FINE'}", "return redis.error_reply('no code')",
    "return redis.error_reply('-CODE with dash')", "return redis.status_reply('STATUS')", "return {double = 3.5}", "return {map = {a = 1}}",
    "return {set = {x = true}}", "return {big_number = '123456789012345678901234567890'}", "return {verbatim_string = {format = 'txt', string = 'hi'}}",
    "return {redis.error_reply('inner'), 1}", "return {redis.status_reply('inner'), {err = 'E deep'}}", "return {1, redis.pcall('GET')}", "return 1e20", "return 0/0",
    "return cjson.encode(r)", "return tostring(#r) .. 'x'", "return redis.sha1hex('x')", "return {KEYS[1], ARGV[1], #KEYS, #ARGV}", "return function() end",
];

/// Statements that fail; effects before them stay.
#[rustfmt::skip]
const FAULTS: &[&str] = &[
    "error('boom')", "error({err = 'MINE own'})", "error()", "local x = nil + 1", "undefined_global = 1", "return undefined_global", "redis.call('NOSUCH', 'x')",
    "redis.call('GET')", "redis.call()", "redis.call({})", "redis.call('SET', KEYS[9], 1)", "redis.call('BLPOP', 'q1', '0')", "redis.call('MULTI')",
    "redis.call('SUBSCRIBE', 'c1')", "redis.call('EVAL', 'return 1', '0')", "redis.call('INCR', 'l1')", "string.rep()", "KEYS[1].x.y = 1", "redis.nosuch()",
    "redis.call('XREAD', 'BLOCK', '0', 'STREAMS', 'e1', '$')", "redis.call('CLIENT', 'ID')", "redis.call('WATCH', 'k')", "redis.call('AUTH', 'x')", "redis.call('EXEC')",
    "redis.call('CONFIG', 'GET', 'port')", "redis.call('HELLO')", "redis.call('RESET')", "redis.call('SCRIPT', 'FLUSH')", "redis.call('PUBSUB', 'NOPE')",
];

/// A script with its keys and arguments.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) text: Vec<u8>,
    /// `numkeys`, keys and arguments, as `EVAL` expects them.
    pub(crate) rest: Vec<Vec<u8>>,
}

impl Script {
    pub(crate) fn sha(&self) -> Vec<u8> {
        let digest = Sha1::digest(&self.text);
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
    }
}

/// Generates a script; `others` are templates that it may call in addition to the usual commands.
pub(crate) fn script(generator: &mut Generator, others: &[&str]) -> Script {
    let (mut keys, mut args) = (vec![b"l1".to_vec()], Vec::new());
    let mut text = Vec::new();
    match generator.below(30) {
        0 => text.extend_from_slice(b"#!lua flags=no-writes\n"),
        1 => text.extend_from_slice(b"#!lua\n"),
        2 => text.extend_from_slice(b"redis.setresp(3)\n"),
        3 => text.extend_from_slice(b"redis.setresp(2)\n"),
        _ => {}
    }
    text.extend_from_slice(b"local r = {}\n");
    for _ in 0..1 + generator.below(5) {
        let line = statement(generator, others, &mut keys, &mut args);
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
    if generator.below(10) == 0 {
        let fault = generator.pick(FAULTS);
        text.extend_from_slice(fault.as_bytes());
        text.push(b'\n');
    }
    text.extend_from_slice(generator.pick(RESULTS).as_bytes());
    let mut rest = vec![keys.len().to_string().into_bytes()];
    rest.extend(keys);
    rest.extend(args);
    Script { text, rest }
}

fn statement(
    generator: &mut Generator,
    others: &[&str],
    keys: &mut Vec<Vec<u8>>,
    args: &mut Vec<Vec<u8>>,
) -> Vec<u8> {
    let words = command(generator, others);
    let mut listed = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            listed.extend_from_slice(b", ");
        }
        listed.extend_from_slice(&literal(generator, index, word, keys, args));
    }
    let forms: [(&str, &str); 8] = [
        ("r[#r+1] = redis.call(", ")"),
        ("r[#r+1] = redis.pcall(", ")"),
        ("r[#r+1] = redis.pcall(", ")"),
        ("redis.pcall(", ")"),
        ("for i = 1, 3 do redis.pcall(", ") end"),
        (
            "local ok, e = pcall(redis.call, ",
            ") r[#r+1] = ok r[#r+1] = type(e) == 'table' and e.err or e",
        ),
        (
            "local e = redis.pcall(",
            ") if type(e) == 'table' and e.err then r[#r+1] = 'E' .. e.err end",
        ),
        ("if redis.call('EXISTS', 'l1') == 1 then r[#r+1] = redis.pcall(", ") end"),
    ];
    let (head, tail) = generator.pick(&forms);
    [head.as_bytes(), &listed, tail.as_bytes()].concat()
}

fn command(generator: &mut Generator, others: &[&str]) -> Vec<Vec<u8>> {
    loop {
        let words = if generator.below(4) == 0 {
            let template = generator.pick(others);
            generator.made_from(template)
        } else {
            let step = generator.step();
            if step.pause || step.commands.len() > 1 {
                continue;
            }
            step.commands.into_iter().next().unwrap_or_default()
        };
        let name = String::from_utf8_lossy(&words[0]).to_uppercase();
        // Ids by the clock, `LPOS` where 7.0 overflows, and channels in the order of a hash table.
        let words_of_chance = [&b"*"[..], b"-9223372036854775808", b"CHANNELS"];
        let by_chance = words.iter().any(|word| words_of_chance.contains(&&**word));
        if !UNCERTAIN.contains(&name.as_str()) && !by_chance && words.len() < 40 {
            return words;
        }
    }
}

/// An argument as Lua: a text, a number, or an element of `KEYS` or `ARGV`.
fn literal(
    generator: &mut Generator,
    index: usize,
    word: &[u8],
    keys: &mut Vec<Vec<u8>>,
    args: &mut Vec<Vec<u8>>,
) -> Vec<u8> {
    match generator.below(4) {
        0 if index == 1 => {
            keys.push(word.to_vec());
            format!("KEYS[{}]", keys.len()).into_bytes()
        }
        1 if index > 0 => {
            args.push(word.to_vec());
            format!("ARGV[{}]", args.len()).into_bytes()
        }
        2 if index > 0 && is_plain_number(word) => word.to_vec(),
        _ => {
            let mut text = b"\"".to_vec();
            for byte in word {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b' ' | b'-' | b'*' => {
                        text.push(*byte)
                    }
                    other => text.extend_from_slice(format!("\\{other:03}").as_bytes()),
                }
            }
            text.push(b'"');
            text
        }
    }
}

fn is_plain_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    (1..15).contains(&digits.len())
        && digits[0] != b'.'
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && digits.iter().filter(|byte| **byte == b'.').count() < 2
        && digits.last() != Some(&b'.')
}
