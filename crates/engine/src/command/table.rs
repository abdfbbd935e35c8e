//! The table of all commands: name, arity, flags, keys and function.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::{
    BLOCKING, CONNECTION, Command, FAST, Flags, GROW, Keys, NO_AUTH, NO_MULTI, NO_SCRIPT,
    NOT_QUEUED, READ, SUBCOMMANDS, WHILE_SUBSCRIBED, WRITE, bitfield, bitmap, claim, dump_restore,
    expire, group, group_read, hash, key, list, list_move, pending, scan, server, set, set_algebra,
    sort, stream, stream_info, stream_read, string, zset, zset_algebra, zset_range,
};

/// The maximum length of a command name.
const MAX_NAME: usize = 24;

type ByName = HashMap<&'static [u8], &'static Command, BuildHasherDefault<NameHasher>>;

static BY_NAME: LazyLock<ByName> =
    LazyLock::new(|| COMMANDS.iter().map(|row| (row.name.as_bytes(), row)).collect());

/// Hashes names of commands. Every command of a script is looked up; the table is fixed, so it needs no keyed hash.
#[derive(Debug, Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

pub(super) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; MAX_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    BY_NAME.get(&*lower).copied()
}

const fn row(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: (i32, i32, i32),
    run: fn(&mut crate::db::Db, &[bytes::Bytes], &mut crate::reply::Reply) -> crate::error::Result,
) -> Command {
    Command { name, arity, flags, keys: Keys { first: keys.0, last: keys.1, step: keys.2 }, run }
}

const RF: Flags = READ.and(FAST);
const WF: Flags = WRITE.and(FAST);
const WG: Flags = WRITE.and(GROW);
const WGF: Flags = WG.and(FAST);
const WW: Flags = WRITE.and(BLOCKING);
const WWN: Flags = WW.and(NO_SCRIPT);
const WGWN: Flags = WG.and(BLOCKING).and(NO_SCRIPT);

/// Flags of commands that need the connection.
const C: Flags = CONNECTION.and(NO_SCRIPT);
const CF: Flags = C.and(FAST);
const CS: Flags = C.and(WHILE_SUBSCRIBED);

const NO_KEY: (i32, i32, i32) = (0, 0, 0);
const ONE: (i32, i32, i32) = (1, 1, 1);
const TWO: (i32, i32, i32) = (1, 2, 1);
const ALL: (i32, i32, i32) = (1, -1, 1);
const PAIRS: (i32, i32, i32) = (1, -1, 2);
const ALL_BUT_LAST: (i32, i32, i32) = (1, -2, 1);

/// All commands.
#[rustfmt::skip]
pub(crate) static COMMANDS: &[Command] = &[
    // Strings
    row("append", 3, WGF, ONE, string::append),
    row("decr", 2, WGF, ONE, string::decr),
    row("decrby", 3, WGF, ONE, string::decrby),
    row("get", 2, RF, ONE, string::get),
    row("getdel", 2, WF, ONE, string::getdel),
    row("getex", -2, WF, ONE, string::getex),
    row("getrange", 4, READ, ONE, string::getrange),
    row("getset", 3, WGF, ONE, string::getset),
    row("incr", 2, WGF, ONE, string::incr),
    row("incrby", 3, WGF, ONE, string::incrby),
    row("incrbyfloat", 3, WGF, ONE, string::incrbyfloat),
    row("mget", -2, RF, ALL, string::mget),
    row("mset", -3, WG, PAIRS, string::mset),
    row("msetnx", -3, WG, PAIRS, string::msetnx),
    row("psetex", 4, WG, ONE, string::psetex),
    row("set", -3, WG, ONE, string::set),
    row("setex", 4, WG, ONE, string::setex),
    row("setnx", 3, WGF, ONE, string::setnx),
    row("setrange", 4, WG, ONE, string::setrange),
    row("strlen", 2, RF, ONE, string::strlen),
    row("substr", 4, READ, ONE, string::getrange),
    // Bitmaps
    row("bitcount", -2, READ, ONE, bitmap::bitcount),
    row("bitfield", -2, WG, ONE, bitfield::bitfield),
    row("bitfield_ro", -2, RF, ONE, bitfield::bitfield_ro),
    row("bitop", -4, WG, (2, -1, 1), bitmap::bitop),
    row("bitpos", -3, READ, ONE, bitmap::bitpos),
    row("getbit", 3, RF, ONE, bitmap::getbit),
    row("setbit", 4, WG, ONE, bitmap::setbit),
    // Keys
    row("copy", -3, WG, TWO, key::copy),
    row("dbsize", 1, RF, NO_KEY, key::dbsize),
    row("del", -2, WRITE, ALL, key::del),
    row("dump", 2, READ, ONE, dump_restore::dump),
    row("exists", -2, RF, ALL, key::exists),
    row("expire", -3, WF, ONE, expire::expire),
    row("expireat", -3, WF, ONE, expire::expireat),
    row("expiretime", 2, RF, ONE, expire::expiretime),
    row("flushall", -1, WRITE, NO_KEY, key::flushall),
    row("flushdb", -1, WRITE, NO_KEY, key::flushdb),
    row("keys", 2, READ, NO_KEY, scan::keys),
    row("move", 3, WF, ONE, key::move_key),
    row("object", -2, READ.and(SUBCOMMANDS), (2, 2, 1), key::object),
    row("persist", 2, WF, ONE, expire::persist),
    row("pexpire", -3, WF, ONE, expire::pexpire),
    row("pexpireat", -3, WF, ONE, expire::pexpireat),
    row("pexpiretime", 2, RF, ONE, expire::pexpiretime),
    row("pttl", 2, RF, ONE, expire::pttl),
    row("randomkey", 1, READ, NO_KEY, key::randomkey),
    row("rename", 3, WRITE, TWO, key::rename),
    row("renamenx", 3, WF, TWO, key::renamenx),
    row("restore", -4, WG, ONE, dump_restore::restore),
    row("scan", -2, READ, NO_KEY, scan::scan),
    row("sort", -2, WG, ONE, sort::sort),
    row("sort_ro", -2, READ, ONE, sort::sort_ro),
    row("touch", -2, RF, ALL, key::exists),
    row("ttl", 2, RF, ONE, expire::ttl),
    row("type", 2, RF, ONE, key::type_of),
    row("unlink", -2, WF, ALL, key::del),
    // Hashes
    row("hdel", -3, WF, ONE, hash::hdel),
    row("hexists", 3, RF, ONE, hash::hexists),
    row("hget", 3, RF, ONE, hash::hget),
    row("hgetall", 2, READ, ONE, hash::hgetall),
    row("hincrby", 4, WGF, ONE, hash::hincrby),
    row("hincrbyfloat", 4, WGF, ONE, hash::hincrbyfloat),
    row("hkeys", 2, READ, ONE, hash::hkeys),
    row("hlen", 2, RF, ONE, hash::hlen),
    row("hmget", -3, RF, ONE, hash::hmget),
    row("hmset", -4, WGF, ONE, hash::hmset),
    row("hrandfield", -2, READ, ONE, hash::hrandfield),
    row("hscan", -3, READ, ONE, scan::hscan),
    row("hset", -4, WGF, ONE, hash::hset),
    row("hsetnx", 4, WGF, ONE, hash::hsetnx),
    row("hstrlen", 3, RF, ONE, hash::hstrlen),
    row("hvals", 2, READ, ONE, hash::hvals),
    // Lists
    row("blmove", 6, WGWN, TWO, list_move::blmove),
    row("blmpop", -5, WW, NO_KEY, list_move::blmpop),
    row("blpop", -3, WWN, ALL_BUT_LAST, list_move::blpop),
    row("brpop", -3, WWN, ALL_BUT_LAST, list_move::brpop),
    row("brpoplpush", 4, WGWN, TWO, list_move::brpoplpush),
    row("lindex", 3, READ, ONE, list::lindex),
    row("linsert", 5, WG, ONE, list::linsert),
    row("llen", 2, RF, ONE, list::llen),
    row("lmove", 5, WG, TWO, list_move::lmove),
    row("lmpop", -4, WRITE, NO_KEY, list_move::lmpop),
    row("lpop", -2, WF, ONE, list::lpop),
    row("lpos", -3, READ, ONE, list::lpos),
    row("lpush", -3, WGF, ONE, list::lpush),
    row("lpushx", -3, WGF, ONE, list::lpushx),
    row("lrange", 4, READ, ONE, list::lrange),
    row("lrem", 4, WRITE, ONE, list::lrem),
    row("lset", 4, WG, ONE, list::lset),
    row("ltrim", 4, WRITE, ONE, list::ltrim),
    row("rpop", -2, WF, ONE, list::rpop),
    row("rpoplpush", 3, WG, TWO, list_move::rpoplpush),
    row("rpush", -3, WGF, ONE, list::rpush),
    row("rpushx", -3, WGF, ONE, list::rpushx),
    // Sets
    row("sadd", -3, WGF, ONE, set::sadd),
    row("scard", 2, RF, ONE, set::scard),
    row("sdiff", -2, READ, ALL, set_algebra::sdiff),
    row("sdiffstore", -3, WG, ALL, set_algebra::sdiffstore),
    row("sinter", -2, READ, ALL, set_algebra::sinter),
    row("sintercard", -3, READ, NO_KEY, set_algebra::sintercard),
    row("sinterstore", -3, WG, ALL, set_algebra::sinterstore),
    row("sismember", 3, RF, ONE, set::sismember),
    row("smembers", 2, READ, ONE, set::smembers),
    row("smismember", -3, RF, ONE, set::smismember),
    row("smove", 4, WF, TWO, set::smove),
    row("spop", -2, WF, ONE, set::spop),
    row("srandmember", -2, READ, ONE, set::srandmember),
    row("srem", -3, WF, ONE, set::srem),
    row("sscan", -3, READ, ONE, scan::sscan),
    row("sunion", -2, READ, ALL, set_algebra::sunion),
    row("sunionstore", -3, WG, ALL, set_algebra::sunionstore),
    // Sorted sets
    row("bzmpop", -5, WW, NO_KEY, zset::bzmpop),
    row("bzpopmax", -3, WWN.and(FAST), ALL_BUT_LAST, zset::bzpopmax),
    row("bzpopmin", -3, WWN.and(FAST), ALL_BUT_LAST, zset::bzpopmin),
    row("zadd", -4, WGF, ONE, zset::zadd),
    row("zcard", 2, RF, ONE, zset::zcard),
    row("zcount", 4, RF, ONE, zset_range::zcount),
    row("zdiff", -3, READ, NO_KEY, zset_algebra::zdiff),
    row("zdiffstore", -4, WG, ONE, zset_algebra::zdiffstore),
    row("zincrby", 4, WGF, ONE, zset::zincrby),
    row("zinter", -3, READ, NO_KEY, zset_algebra::zinter),
    row("zintercard", -3, READ, NO_KEY, zset_algebra::zintercard),
    row("zinterstore", -4, WG, ONE, zset_algebra::zinterstore),
    row("zlexcount", 4, RF, ONE, zset_range::zlexcount),
    row("zmpop", -4, WRITE, NO_KEY, zset::zmpop),
    row("zmscore", -3, RF, ONE, zset::zmscore),
    row("zpopmax", -2, WF, ONE, zset::zpopmax),
    row("zpopmin", -2, WF, ONE, zset::zpopmin),
    row("zrandmember", -2, READ, ONE, zset::zrandmember),
    row("zrange", -4, READ, ONE, zset_range::zrange),
    row("zrangebylex", -4, READ, ONE, zset_range::zrangebylex),
    row("zrangebyscore", -4, READ, ONE, zset_range::zrangebyscore),
    row("zrangestore", -5, WG, TWO, zset_range::zrangestore),
    row("zrank", -3, RF, ONE, zset::zrank),
    row("zrem", -3, WF, ONE, zset::zrem),
    row("zremrangebylex", 4, WRITE, ONE, zset_range::zremrangebylex),
    row("zremrangebyrank", 4, WRITE, ONE, zset_range::zremrangebyrank),
    row("zremrangebyscore", 4, WRITE, ONE, zset_range::zremrangebyscore),
    row("zrevrange", -4, READ, ONE, zset_range::zrevrange),
    row("zrevrangebylex", -4, READ, ONE, zset_range::zrevrangebylex),
    row("zrevrangebyscore", -4, READ, ONE, zset_range::zrevrangebyscore),
    row("zrevrank", -3, RF, ONE, zset::zrevrank),
    row("zscan", -3, READ, ONE, scan::zscan),
    row("zscore", 3, RF, ONE, zset::zscore),
    row("zunion", -3, READ, NO_KEY, zset_algebra::zunion),
    row("zunionstore", -4, WG, ONE, zset_algebra::zunionstore),
    // Streams
    row("xack", -4, WF, ONE, pending::xack),
    row("xadd", -5, WGF, ONE, stream::xadd),
    row("xautoclaim", -6, WF, ONE, claim::xautoclaim),
    row("xclaim", -6, WF, ONE, claim::xclaim),
    row("xdel", -3, WF, ONE, stream::xdel),
    row("xgroup", -2, WRITE.and(SUBCOMMANDS), (2, 2, 1), group::xgroup),
    row("xinfo", -2, READ.and(SUBCOMMANDS), (2, 2, 1), stream_info::xinfo),
    row("xlen", 2, RF, ONE, stream_read::xlen),
    row("xpending", -3, READ, ONE, pending::xpending),
    row("xrange", -4, READ, ONE, stream_read::xrange),
    row("xread", -4, READ.and(BLOCKING), NO_KEY, stream_read::xread),
    row("xreadgroup", -7, WW, NO_KEY, group_read::xreadgroup),
    row("xrevrange", -4, READ, ONE, stream_read::xrevrange),
    row("xsetid", -3, WGF, ONE, stream::xsetid),
    row("xtrim", -4, WRITE, ONE, stream::xtrim),
    // The server itself
    row("command", -1, SUBCOMMANDS, NO_KEY, server::command),
    row("echo", 2, FAST, NO_KEY, server::echo),
    row("memory", -2, READ.and(SUBCOMMANDS), NO_KEY, server::memory),
    row("ping", -1, FAST.and(WHILE_SUBSCRIBED), NO_KEY, server::ping),
    row("select", 2, FAST, NO_KEY, server::select),
    row("time", 1, FAST, NO_KEY, server::time),
    // Connections
    row("auth", -2, CF.and(NO_AUTH), NO_KEY, server::connection),
    row("bgrewriteaof", 1, C, NO_KEY, server::connection),
    row("client", -2, C.and(SUBCOMMANDS), NO_KEY, server::connection),
    row("config", -2, C.and(SUBCOMMANDS), NO_KEY, server::connection),
    row("debug", -2, C, NO_KEY, server::connection),
    row("discard", 1, CF.and(NOT_QUEUED), NO_KEY, server::connection),
    row("eval", -3, C, NO_KEY, server::connection),
    row("eval_ro", -3, C, NO_KEY, server::connection),
    row("evalsha", -3, C, NO_KEY, server::connection),
    row("evalsha_ro", -3, C, NO_KEY, server::connection),
    row("exec", 1, C.and(NOT_QUEUED), NO_KEY, server::connection),
    row("hello", -1, CF.and(NO_AUTH), NO_KEY, server::connection),
    row("info", -1, CONNECTION, NO_KEY, server::connection),
    row("lastsave", 1, CONNECTION.and(FAST), NO_KEY, server::connection),
    row("monitor", 1, C, NO_KEY, server::connection),
    row("multi", 1, CF.and(NOT_QUEUED), NO_KEY, server::connection),
    row("psubscribe", -2, CS, NO_KEY, server::connection),
    row("publish", 3, CONNECTION.and(FAST), NO_KEY, server::connection),
    row("pubsub", -2, CONNECTION.and(SUBCOMMANDS), NO_KEY, server::connection),
    row("punsubscribe", -1, CS, NO_KEY, server::connection),
    row("quit", -1, CF.and(NO_AUTH).and(WHILE_SUBSCRIBED).and(NOT_QUEUED), NO_KEY, server::connection),
    row("reset", 1, CF.and(NO_AUTH).and(WHILE_SUBSCRIBED).and(NOT_QUEUED), NO_KEY, server::connection),
    row("role", 1, CF, NO_KEY, server::connection),
    row("script", -2, C.and(SUBCOMMANDS), NO_KEY, server::connection),
    row("shutdown", -1, C.and(NO_MULTI), NO_KEY, server::connection),
    row("slowlog", -2, CONNECTION.and(SUBCOMMANDS), NO_KEY, server::connection),
    row("subscribe", -2, CS, NO_KEY, server::connection),
    row("unsubscribe", -1, CS, NO_KEY, server::connection),
    row("unwatch", 1, CF, NO_KEY, server::connection),
    row("wait", 3, C, NO_KEY, server::connection),
    row("waitaof", 4, C, NO_KEY, server::connection),
    row("watch", -2, CF.and(NOT_QUEUED), ALL, server::connection),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_lower_case_and_found_in_any_case() {
        assert_eq!(BY_NAME.len(), COMMANDS.len());
        for row in COMMANDS {
            assert_eq!(row.name, row.name.to_lowercase());
            let found = find(row.name.to_uppercase().as_bytes()).map(|found| found.name);
            assert_eq!(found, Some(row.name));
        }
        assert!(find(b"no-such-command").is_none());
        assert!(find(&[b'x'; 1000]).is_none());
    }
}
