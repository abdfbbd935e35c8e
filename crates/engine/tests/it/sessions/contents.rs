//! The whole contents of a server, read over a connection, in a comparable form.

use stampede_engine::testing::DATABASES;

use super::frame;
use super::side::words;
use crate::redis::Client;
use crate::rules::{Tree, parse};

/// One key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) db: usize,
    pub(crate) key: String,
    pub(crate) kind: String,
    /// Milliseconds since 1970; -1 if it does not expire.
    pub(crate) expiry: i64,
    pub(crate) value: Vec<Tree>,
    /// Times in the value, in milliseconds since 1970: deliveries of a consumer group.
    pub(crate) times: Vec<i64>,
}

/// All keys of all databases.
pub(crate) fn contents(port: u16, password: Option<&str>) -> Vec<Entry> {
    let mut client = Client::connect(port);
    if let Some(password) = password {
        client.call_all([words(&format!("AUTH {password}"))].iter());
    }
    let mut all = Vec::new();
    for db in 0..DATABASES {
        let select = [words(&format!("SELECT {db}")), words("KEYS *")];
        let keys = client.call_all(select.iter()).remove(1);
        let mut keys: Vec<Vec<u8>> = frame::items(&keys)
            .unwrap_or_default()
            .iter()
            .map(|key| frame::text(key).to_vec())
            .collect();
        keys.sort();
        all.extend(keys.iter().map(|key| entry(&mut client, db, key)));
    }
    all
}

fn entry(client: &mut Client, db: usize, key: &[u8]) -> Entry {
    let with_key = |line: &str| {
        let arg = |word: &str| if word == "KEY" { key.to_vec() } else { word.as_bytes().to_vec() };
        line.split(' ').map(arg).collect::<Vec<_>>()
    };
    let about = ["TYPE KEY", "OBJECT ENCODING KEY", "PEXPIRETIME KEY"].map(with_key);
    let about = client.call_all(about.iter());
    let text = |reply: &[u8]| String::from_utf8_lossy(frame::text(reply)).into_owned();
    let (kind, encoding) = (text(&about[0]), text(&about[1]));
    let ask: &[&str] = match kind.as_str() {
        "string" => &["GET KEY"],
        "hash" => &["HGETALL KEY"],
        "list" => &["LRANGE KEY 0 -1"],
        "set" => &["SMEMBERS KEY"],
        "zset" => &["ZRANGE KEY 0 -1 WITHSCORES"],
        _ => &["XRANGE KEY - +", "XINFO STREAM KEY FULL COUNT 0"],
    };
    let commands: Vec<_> = ask.iter().map(|line| with_key(line)).collect();
    let mut value: Vec<Tree> =
        client.call_all(commands.iter()).iter().map(|reply| parse(reply)).collect();
    match (&mut value[0], kind.as_str()) {
        // Redis 7.0 has a table where the engine has a list, as 7.2 does.
        (Tree::Array(_, items), "set") if encoding != "intset" => items.sort(),
        (Tree::Array(_, items), "hash") if encoding == "hashtable" => {
            let mut pairs: Vec<Vec<Tree>> = items.chunks(2).map(<[Tree]>::to_vec).collect();
            pairs.sort();
            *items = pairs.concat();
        }
        _ => {}
    }
    if let Some(Tree::Array(_, fields)) = value.get_mut(1) {
        // The memory layout of a stream may differ.
        fields.drain(2..6);
    }
    let expiry = text(&about[2]).parse().unwrap_or(-2);
    let mut times = Vec::new();
    value.iter_mut().for_each(|tree| take_times(tree, &mut times));
    Entry { db, key: key.escape_ascii().to_string(), kind, expiry, value, times }
}

fn take_times(tree: &mut Tree, times: &mut Vec<i64>) {
    match tree {
        Tree::Int(ms) if *ms > 1_000_000_000_000 => times.push(std::mem::take(ms)),
        Tree::Array(_, items) => items.iter_mut().for_each(|item| take_times(item, times)),
        _ => {}
    }
}

/// The first difference between two keyspaces; expiries and times may differ by `slack_ms`.
pub(crate) fn difference(ours: &[Entry], theirs: &[Entry], slack_ms: i64) -> Option<String> {
    let near = |a: &Entry, b: &Entry| {
        a.expiry == b.expiry
            || (a.expiry > 0 && b.expiry > 0 && (a.expiry - b.expiry).abs() <= slack_ms)
    };
    let times_near = |a: &Entry, b: &Entry| {
        let mut pairs = a.times.iter().zip(&b.times);
        a.times.len() == b.times.len() && pairs.all(|(a, b)| (a - b).abs() <= slack_ms)
    };
    let same = |a: &Entry, b: &Entry| {
        (a.db, &a.key, &a.kind, &a.value) == (b.db, &b.key, &b.kind, &b.value)
            && near(a, b)
            && times_near(a, b)
    };
    let found = ours.iter().zip(theirs).find(|(a, b)| !same(a, b));
    if let Some((a, b)) = found {
        return Some(format!("{a:.2000?}\nand\n{b:.2000?}"));
    }
    (ours.len() != theirs.len()).then(|| format!("{} and {} keys", ours.len(), theirs.len()))
}
