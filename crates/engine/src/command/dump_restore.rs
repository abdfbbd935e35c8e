//! `DUMP` and `RESTORE`: a key as a payload of the engine's own format, and back.
//!
//! ```text
//!   payload = "STAMPEDE" · version (1 byte) · effects that create the key "" · CRC-32C of all before (4 bytes)
//! ```
//!
//! The effects are those of a snapshot (`dump.rs`). A payload may come from anybody, and its checksum is no
//! secret. So `RESTORE` runs the effects in an empty keyspace of its own: only commands that create
//! values, on the one key, without an error. What is there afterwards is moved to the live keyspace. The
//! journal gets the effects of the value, not the payload: it does not depend on this format.
//!
//! Redis's own format (RDB) is refused, as a payload of a wrong version.

use bytes::Bytes;

use super::args::{Options, int};
use super::{WRITE, apply, find};
use crate::db::effects::{Effects, decode};
use crate::db::{Blocking, Db};
use crate::dump;
use crate::error::{Error, RECORD_TOO_LARGE, Result, SYNTAX};
use crate::reply::{Protocol, Reply};
use crate::value::Value;

const MAGIC: &[u8] = b"STAMPEDE";
const VERSION: u8 = 1;
const CHECKSUM_LEN: usize = 4;

/// The commands of a payload, and the first letters of others: those of streams.
const CREATING: [&str; 6] = ["set", "hset", "rpush", "sadd", "srem", "zadd"];
const STREAM_PREFIX: char = 'x';

const BAD_VERSION: Error = Error::Fixed("ERR DUMP payload version or checksum are wrong");
const BAD_DATA: Error = Error::Fixed("ERR Bad data format");
const BUSY_KEY: Error = Error::Fixed("BUSYKEY Target key name already exists.");

pub(super) fn dump(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    match db.value(&args[1]) {
        Some(value) => reply.bulk(&payload(value)),
        None => reply.nil(),
    }
    Ok(())
}

fn payload(value: &Value) -> Vec<u8> {
    let mut effects = Effects::default();
    dump::dump(b"", value, None, |args| effects.push(0, args));
    let mut payload = [MAGIC, &[VERSION], effects.as_bytes()].concat();
    let checksum = crc32c::crc32c(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// The options of `RESTORE`.
#[derive(Debug, Default)]
struct Request {
    replace: bool,
    absolute: bool,
}

impl Request {
    fn parse(args: &[Bytes]) -> Result<Self> {
        let (mut request, mut options) = (Self::default(), Options::new(args));
        while let Some(word) = options.next() {
            let has_value = options.left() >= 1;
            match word.to_ascii_uppercase().as_slice() {
                b"REPLACE" => request.replace = true,
                b"ABSTTL" => request.absolute = true,
                b"IDLETIME" if has_value => {
                    if int(options.value()?)? < 0 {
                        return Err(Error::Fixed("ERR Invalid IDLETIME value, must be >= 0"));
                    }
                }
                b"FREQ" if has_value => {
                    if !(0..=255).contains(&int(options.value()?)?) {
                        let text = "ERR Invalid FREQ value, must be >= 0 and <= 255";
                        return Err(Error::Fixed(text));
                    }
                }
                _ => return Err(SYNTAX),
            }
        }
        Ok(request)
    }
}

pub(super) fn restore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    let request = Request::parse(&args[4..])?;
    if !request.replace && db.exists(key) {
        return Err(BUSY_KEY);
    }
    let ttl = int(&args[2])?;
    if ttl < 0 {
        return Err(Error::Fixed("ERR Invalid TTL value, must be >= 0"));
    }
    let value = read(&args[3])?;
    let at = if request.absolute { ttl } else { ttl.saturating_add(db.now_ms()) };
    // The effects repeat the key in every command: they can be far larger than the payload.
    let mut size = Effects::size_of(&[&b"DEL"[..], &**key]);
    dump::dump(key, &value, Some(at), |args| size = size.saturating_add(Effects::size_of(args)));
    if !db.effects().fits(size) {
        return Err(RECORD_TOO_LARGE);
    }
    if db.remove(key).is_some() {
        db.record(&[b"DEL", &**key]);
    }
    if ttl == 0 || at > db.now_ms() {
        let expiry = (ttl > 0).then_some(at);
        dump::dump(key, &value, expiry, |args| db.record(args));
        db.set(key, value);
        if expiry.is_some() {
            db.set_expiry(key, expiry);
        }
    }
    reply.ok();
    Ok(())
}

/// Makes the value of a payload.
fn read(payload: &Bytes) -> Result<Value> {
    let body_len = payload.len().checked_sub(CHECKSUM_LEN).ok_or(BAD_VERSION)?;
    let (body, checksum) = payload.split_at(body_len);
    let intact = crc32c::crc32c(body).to_le_bytes() == *checksum;
    let head = [MAGIC, &[VERSION]].concat();
    if !intact || !body.starts_with(&head) {
        return Err(BAD_VERSION);
    }
    let mut scratch = Db::new();
    scratch.effects().pause();
    scratch.set_blocking(Blocking::Forbidden);
    let mut reply = Reply::new(Protocol::Resp2);
    for effect in decode(&payload.slice(head.len()..body_len)) {
        let (index, args) = effect.map_err(|_| BAD_DATA)?;
        if index != 0 || !creates_the_key(&args) {
            return Err(BAD_DATA);
        }
        apply(&mut scratch, &args, &mut reply);
        if reply.take().first() == Some(&b'-') {
            return Err(BAD_DATA);
        }
    }
    let only = scratch.len() == 1;
    scratch.remove(b"").map(|(value, _)| value).filter(|_| only).ok_or(BAD_DATA)
}

/// Whether a command of a payload only adds to the key with the empty name. Commands of streams are
/// those that write, and those that exist only in records.
fn creates_the_key(args: &[Bytes]) -> bool {
    let [name, key, ..] = args else { return false };
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let only_reads = find(name.as_bytes()).is_some_and(|command| !command.flags.has(WRITE));
    let is_stream = name.starts_with(STREAM_PREFIX) && !only_reads;
    (is_stream || CREATING.contains(&name.as_str())) && key.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::call;

    fn run(db: &mut Db, args: &[&[u8]]) -> Bytes {
        let mut reply = Reply::new(Protocol::Resp2);
        let args: Vec<Bytes> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
        call(db, &args, &mut reply);
        reply.take().freeze()
    }

    fn words(db: &mut Db, line: &str) -> Bytes {
        run(db, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn a_payload_whose_effects_are_too_large_for_one_record_changes_nothing() {
        let mut db = Db::new();
        for _ in 0..100 {
            words(&mut db, "XADD stream * f v");
        }
        let payload = payload_of(&mut db, "stream");
        db.effects().clear();
        db.effects().set_limit(100_000);
        let long = "k".repeat(2_000);
        let refused = run(&mut db, &[b"RESTORE", long.as_bytes(), b"0", &payload]);
        assert_eq!(refused[0], b'-', "{refused:?}");
        assert!(db.effects().is_empty() && !db.exists(long.as_bytes()));
        assert_eq!(&run(&mut db, &[b"RESTORE", b"short", b"0", &payload])[..], b"+OK\r\n");
    }

    fn filled() -> Db {
        let mut db = Db::new();
        for line in [
            "SET text some\u{1f9e9}text",
            "HSET hash a 1 b 2",
            "RPUSH list x y z",
            "SADD ints 3 1 2",
            "SADD words 9 b a 1",
            "ZADD zset 1.5 a inf b -0.1 c",
            "XADD stream 5-1 f v",
            "XADD stream 6-1 f v g w",
            "XDEL stream 6-1",
        ] {
            assert_ne!(words(&mut db, line)[0], b'-', "{line}");
        }
        for number in 0..700 {
            words(&mut db, &format!("HSET large field:{number} {number}"));
            words(&mut db, &format!("SADD many member:{number}"));
        }
        db
    }

    const KEYS: [&str; 9] =
        ["text", "hash", "list", "ints", "words", "zset", "stream", "large", "many"];

    fn payload_of(db: &mut Db, key: &str) -> Vec<u8> {
        db.value(key.as_bytes()).map(payload).unwrap()
    }

    /// A payload with a right checksum.
    fn sealed(effects: &[&[&[u8]]]) -> Vec<u8> {
        let mut body = Effects::default();
        effects.iter().for_each(|args| body.push(0, args));
        let mut payload = [MAGIC, &[VERSION], body.as_bytes()].concat();
        let checksum = crc32c::crc32c(&payload);
        payload.extend_from_slice(&checksum.to_le_bytes());
        payload
    }

    #[test]
    fn a_restored_key_is_the_key_that_was_dumped_also_after_a_replay() {
        let mut db = filled();
        for key in KEYS {
            let payload = payload_of(&mut db, key);
            db.effects().clear();
            assert_eq!(&*run(&mut db, &[b"RESTORE", b"copy", b"0", &payload]), b"+OK\r\n");
            let effects = db.effects().take();
            let mut again = Db::new();
            crate::command::replay(&mut again, &effects).unwrap();
            for one in [&mut db, &mut again] {
                let ordered = !["large", "many"].contains(&key);
                let copy = payload_of(one, "copy");
                assert!(copy == payload || !ordered && copy.len() == payload.len(), "{key}");
            }
            let busy = run(&mut db, &[b"RESTORE", b"copy", b"0", &payload]);
            assert_eq!(&*busy, b"-BUSYKEY Target key name already exists.\r\n");
            words(&mut db, "DEL copy");
        }
    }

    #[test]
    fn a_restored_key_expires_when_it_should() {
        let mut db = filled();
        db.set_time_us(5_000_000);
        let payload = payload_of(&mut db, "hash");
        let mut restore = |ttl: &[u8], more: &[&[u8]]| {
            let head: [&[u8]; 5] = [b"RESTORE", b"copy", ttl, &payload, b"REPLACE"];
            let args = [&head[..], more].concat();
            db.effects().clear();
            assert_eq!(&*run(&mut db, &args), b"+OK\r\n");
            let effects = db.effects().take();
            let mut again = Db::new();
            crate::command::replay(&mut again, &effects).unwrap();
            let expiry = db.expiry(b"copy");
            assert_eq!(again.expiry(b"copy"), expiry);
            expiry
        };
        assert_eq!(restore(b"100", &[]), Some(Some(5100)));
        assert_eq!(restore(b"0", &[]), Some(None));
        assert_eq!(restore(b"9000", &[b"ABSTTL"]), Some(Some(9000)));
        assert_eq!(restore(b"9223372036854775807", &[]), Some(Some(i64::MAX)));
        // A time that has passed removes the key.
        assert_eq!(restore(b"4000", &[b"ABSTTL"]), None);
    }

    #[test]
    fn damaged_payloads_are_refused() {
        let mut db = filled();
        for key in KEYS {
            let payload = payload_of(&mut db, key);
            for at in (0..payload.len()).step_by(1 + payload.len() / 200) {
                let mut flipped = payload.clone();
                flipped[at] ^= 1 << (at % 8);
                for bad in [&flipped[..], &payload[..at]] {
                    let reply = run(&mut db, &[b"RESTORE", b"new", b"0", bad]);
                    let text = b"-ERR DUMP payload version or checksum are wrong\r\n";
                    assert_eq!(&*reply, text, "{key} {at}");
                }
            }
        }
        assert!(!db.exists(b"new"));
    }

    #[test]
    fn payloads_with_a_right_checksum_cannot_run_other_commands() {
        let bad: &[&[&[&[u8]]]] = &[
            &[],
            &[&[b"FLUSHALL"]],
            &[&[b"SET", b"other", b"v"]],
            &[&[b"SET", b"", b"v"], &[b"SET", b"other", b"v"]],
            &[&[b"SET", b"", b"v"], &[b"RPUSH", b"", b"v"]],
            &[&[b"SETRANGE", b"", b"536870000", b"v"]],
            &[&[b"SETBIT", b"", b"4294967295", b"1"]],
            &[&[b"RESTORE", b"", b"0", b"v"]],
            &[&[b"HSET", b"", b"f"]],
            &[&[b"SADD", b"", b"a"], &[b"SREM", b"", b"a"]],
            &[&[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"", b"$"]],
            &[&[b"DEL", b""]],
            &[&[b"NOSUCH", b""]],
            &[&[]],
        ];
        let mut db = filled();
        for effects in bad {
            let reply = run(&mut db, &[b"RESTORE", b"new", b"0", &sealed(effects)]);
            assert_eq!(&*reply, b"-ERR Bad data format\r\n", "{effects:?}");
        }
        assert!(!db.exists(b"new") && db.exists(b"text"));
    }

    #[test]
    fn random_payloads_with_a_right_checksum_do_no_harm() {
        let mut db = filled();
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..2000 {
            let key = KEYS[random(KEYS.len() - 2)];
            let mut bad = payload_of(&mut db, key);
            bad.truncate(bad.len() - CHECKSUM_LEN);
            for _ in 0..1 + random(4) {
                let at = MAGIC.len() + 1 + random(bad.len() - MAGIC.len() - 1);
                bad[at] = random(256) as u8;
            }
            let checksum = crc32c::crc32c(&bad);
            bad.extend_from_slice(&checksum.to_le_bytes());
            let reply = run(&mut db, &[b"RESTORE", b"new", b"0", &bad, b"REPLACE"]);
            assert!(reply.starts_with(b"+OK") || reply.starts_with(b"-ERR Bad"), "{reply:?}");
        }
        assert!(KEYS.iter().all(|key| db.exists(key.as_bytes())));
    }
}
