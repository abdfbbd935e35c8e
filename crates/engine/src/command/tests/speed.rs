//! Measures commands on the keyspace, including effects, without network and journal.
//!
//! `cargo nextest run --release --run-ignored only --no-capture speed`

use std::time::Instant;

use crate::command;
use crate::db::Db;
use crate::reply::{Protocol, Reply};
use bytes::Bytes;

struct Bench {
    db: Db,
    reply: Reply,
}

impl Bench {
    fn new() -> Self {
        let mut db = Db::new();
        db.set_time_us(1_700_000_000_000_000);
        Self { db, reply: Reply::new(Protocol::Resp2) }
    }

    fn time(&mut self, name: &str, count: usize, args: impl Fn(usize) -> Vec<String>) {
        let calls: Vec<Vec<Bytes>> =
            (0..count).map(|n| args(n).into_iter().map(Bytes::from).collect()).collect();
        let start = Instant::now();
        for args in &calls {
            command::call(&mut self.db, args, &mut self.reply);
            self.reply.take();
            self.db.effects().clear();
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / count as f64;
        println!("{name:44} {each:8.3} µs");
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
#[ignore = "a measurement; run it in release"]
fn commands_take_so_long() {
    const N: usize = 1_000_000;
    let spread = |n: usize| n.wrapping_mul(7_919) % N;
    let mut bench = Bench::new();
    bench.time("SET, 1M new keys", N, |n| words(&format!("SET key:{n} value:{n}")));
    bench.time("GET, spread over 1M keys", N, |n| words(&format!("GET key:{}", spread(n))));
    bench.time("INCR", N, |_| words("INCR counter"));
    bench.time("HSET of 10 fields, 200k new hashes", N / 5, |n| {
        words(&format!(
            "HSET job:{n} name ticket data {{}} opts {{}} timestamp 1700000000000 delay 0 priority 0 \
             a 1 b 2 c 3 d 4"
        ))
    });
    bench.time("HGET of a small hash", N, |n| words(&format!("HGET job:{} delay", spread(n) / 5)));
    bench.time("HINCRBY of a small hash", N, |n| {
        words(&format!("HINCRBY job:{} d 1", spread(n) / 5))
    });
    bench.time("LPUSH, to 1M elements", N, |n| words(&format!("LPUSH wait {n}")));
    bench.time("RPOPLPUSH", N / 2, |_| words("RPOPLPUSH wait active"));
    bench.time("LREM near the head of 500k", 10_000, |n| {
        words(&format!("LREM active 1 {}", N / 2 - 1 - n))
    });
    bench.time("SADD, to 1M members", N, |n| words(&format!("SADD set member:{n}")));
    bench.time("ZADD ascending, to 1M members", N, |n| words(&format!("ZADD z {n} job:{n}")));
    bench.time("ZADD in any order, to 1M members", N, |n| {
        words(&format!("ZADD y {} job:{n}", spread(n)))
    });
    bench.time("ZRANK of 1M", N, |n| words(&format!("ZRANK y job:{}", spread(n))));
    bench.time("ZRANGEBYSCORE LIMIT 0 1 of 1M", N, |n| {
        words(&format!("ZRANGEBYSCORE y {} +inf LIMIT 0 1", spread(n)))
    });
    bench.time("ZREMRANGEBYRANK 0 0 of 1M", N / 2, |_| words("ZREMRANGEBYRANK z 0 0"));
    bench.time("XADD MAXLEN ~ 10000", N, |n| {
        words(&format!("XADD events MAXLEN ~ 10000 * event added jobId {n}"))
    });
    bench.time("SET PX, 200k new keys", N / 5, |n| words(&format!("SET lock:{n} token PX 30000")));
    bench.time("DEL, 1M keys", N, |n| words(&format!("DEL key:{n}")));
}
