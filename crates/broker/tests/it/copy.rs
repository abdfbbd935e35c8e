//! Copies between two servers: everything arrives, and what cannot be copied well is told.

use std::collections::BTreeSet;

use redis::aio::MultiplexedConnection;
use redis::{Value, cmd, pipe};
use stampede_broker::copy::{self, Error, Kind, MARKER, Plan, Report, Step, Target};
use stampede_testkit::Redis;

use crate::stage::{Counting, Running, Stage, config, connect, jobs};

/// Two servers and what was said while one was copied to the other.
struct Copying {
    from: Redis,
    to: Redis,
}

impl Copying {
    async fn start() -> Self {
        let (from, to) = tokio::join!(Redis::start(), Redis::start());
        Self { from, to }
    }

    async fn run(&self, target: Target) -> (Result<Report, Error>, Vec<Step>) {
        run(&self.from.url(), &self.to.url(), target, |_| {}).await
    }
}

async fn run(
    from: &str,
    to: &str,
    target: Target,
    mut then: impl FnMut(&Step) + Send,
) -> (Result<Report, Error>, Vec<Step>) {
    let plan = Plan { from: from.to_owned(), to: to.to_owned(), target };
    let mut steps = Vec::new();
    let mut tell = |step: Step| {
        then(&step);
        steps.push(step);
    };
    let result = copy::run(&plan, &mut tell).await;
    (result, steps)
}

async fn raw(redis: &Redis) -> MultiplexedConnection {
    crate::stage::raw(&redis.url()).await
}

/// Runs commands whose words are separated by spaces.
async fn ask(redis: &Redis, commands: &[&str]) -> Vec<Value> {
    let mut pipe = pipe();
    for command in commands {
        let mut words = command.split(' ');
        pipe.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
    }
    pipe.query_async(&mut raw(redis).await).await.unwrap()
}

/// Every byte there is, so that nothing takes values for text.
fn all_bytes() -> Vec<u8> {
    (0..=255).collect()
}

/// One small value of every type in several databases, odd ones among them.
async fn fill_with_small_values(redis: &Redis) {
    let mut redis = raw(redis).await;
    let bytes = all_bytes();
    let mut pipe = pipe();
    pipe.cmd("SET").arg(&bytes).arg(&bytes);
    pipe.cmd("SET").arg("nothing").arg("");
    pipe.cmd("SET").arg("expires").arg("later").arg("PXAT").arg(4_102_444_800_123_u64);
    pipe.cmd("HSET").arg("hash").arg(&bytes).arg(&bytes).arg("").arg("");
    pipe.cmd("PEXPIREAT").arg("hash").arg(4_102_444_800_456_u64);
    pipe.cmd("RPUSH").arg("list").arg(&["b", "a", "b", ""]).arg(&bytes);
    pipe.cmd("SADD").arg("numbers").arg(&[1, 2, -9_000_000_000_i64]);
    pipe.cmd("SADD").arg("set").arg(&bytes).arg("");
    pipe.cmd("ZADD").arg("zset").arg("-inf").arg("low").arg("inf").arg("high");
    pipe.cmd("ZADD").arg("zset").arg("0.1").arg(&bytes).arg("1.7976931348623157e308").arg("big");
    pipe.cmd("XADD").arg("stream").arg("5-1").arg("f").arg(&bytes).arg("f").arg("twice");
    pipe.cmd("XADD").arg("stream").arg("5-2").arg("").arg("");
    pipe.cmd("XADD").arg("stream").arg("9-0").arg("gone").arg("soon");
    pipe.cmd("XDEL").arg("stream").arg("9-0");
    pipe.cmd("XADD").arg("emptied").arg("7-7").arg("a").arg("b");
    pipe.cmd("XDEL").arg("emptied").arg("7-7");
    pipe.cmd("XGROUP").arg("CREATE").arg("unused").arg("group").arg("0").arg("MKSTREAM");
    pipe.cmd("XGROUP").arg("DESTROY").arg("unused").arg("group");
    pipe.cmd("SELECT").arg(7).cmd("SET").arg("only here").arg("7");
    pipe.cmd("SELECT").arg(15).cmd("ZADD").arg("last").arg(1).arg("one");
    pipe.query_async::<()>(&mut redis).await.unwrap();
}

#[tokio::test]
async fn every_type_arrives_in_every_database_with_expiry_and_stream_ids() {
    let copying = Copying::start().await;
    fill_with_small_values(&copying.from).await;
    let (report, _) = copying.run(Target::MustBeEmpty).await;
    let report = report.unwrap();
    let numbers: Vec<(i64, i64)> = report.databases.iter().map(|db| (db.from, db.to)).collect();
    assert_eq!(numbers, [(0, 0), (7, 7), (15, 15)]);
    let counts: Vec<(Kind, u64)> = report.databases[0].keys.clone().into_iter().collect();
    assert_eq!(
        counts,
        [
            (Kind::String, 3),
            (Kind::Hash, 1),
            (Kind::List, 1),
            (Kind::Set, 2),
            (Kind::SortedSet, 1),
            (Kind::Stream, 3)
        ]
    );
    let questions = [
        "DBSIZE",
        "GET nothing",
        "PEXPIRETIME expires",
        "PEXPIRETIME hash",
        "PEXPIRETIME list",
        "HGET hash ",
        "LRANGE list 0 -1",
        "SMEMBERS numbers",
        "SCARD set",
        "ZRANGE zset 0 -1 WITHSCORES",
        "XRANGE stream - +",
        "XLEN emptied",
        "OBJECT ENCODING numbers",
        "SELECT 7",
        "DBSIZE",
        "SELECT 15",
        "ZSCORE last one",
    ];
    assert_eq!(ask(&copying.to, &questions).await, ask(&copying.from, &questions).await);
    let mut to = raw(&copying.to).await;
    let binary: Vec<u8> = cmd("GET").arg(all_bytes()).query_async(&mut to).await.unwrap();
    assert_eq!(binary, all_bytes());
    let binary: Vec<u8> =
        cmd("HGET").arg("hash").arg(all_bytes()).query_async(&mut to).await.unwrap();
    assert_eq!(binary, all_bytes());
    let is_member: bool =
        cmd("SISMEMBER").arg("set").arg(all_bytes()).query_async(&mut to).await.unwrap();
    assert!(is_member);
    for stream in ["stream", "emptied", "unused"] {
        assert_eq!(state_of(&copying.to, stream).await, state_of(&copying.from, stream).await);
    }
    // The next id follows the deleted one, as it would have in the source.
    let id: Result<String, _> =
        cmd("XADD").arg("emptied").arg("7-7").arg("a").arg("b").query_async(&mut to).await;
    assert!(id.unwrap_err().to_string().contains("equal or smaller"));
}

/// What a stream remembers: the last id, entries added, and the highest id deleted.
async fn state_of(redis: &Redis, stream: &str) -> Vec<(Vec<u8>, Value)> {
    let mut connection = raw(redis).await;
    let info: Vec<Value> =
        cmd("XINFO").arg("STREAM").arg(stream).query_async(&mut connection).await.unwrap();
    let pairs = info.chunks(2).filter_map(|pair| match pair {
        [Value::BulkString(name), value] => Some((name.clone(), value.clone())),
        _ => None,
    });
    let kept: [&[u8]; 4] =
        [b"length", b"last-generated-id", b"entries-added", b"max-deleted-entry-id"];
    let state: Vec<_> = pairs.filter(|(name, _)| kept.contains(&name.as_slice())).collect();
    assert_eq!(state.len(), kept.len());
    state
}

#[tokio::test]
async fn large_values_arrive_in_pieces_and_lists_keep_their_order() {
    let copying = Copying::start().await;
    let mut from = raw(&copying.from).await;
    let text: Vec<u8> = (0..3_500_000_u32).map(|n| (n % 251) as u8).collect();
    cmd("SET").arg("text").arg(&text).query_async::<()>(&mut from).await.unwrap();
    for chunk in (0..30_000_u32).collect::<Vec<_>>().chunks(1000) {
        let mut pipe = pipe();
        for n in chunk {
            pipe.cmd("HSET").arg("hash").arg(n).arg(format!("value {n}")).ignore();
            pipe.cmd("RPUSH").arg("list").arg(format!("item {n}")).ignore();
            pipe.cmd("SADD").arg("set").arg(format!("member {n}")).ignore();
            pipe.cmd("ZADD").arg("zset").arg(f64::from(*n) / 3.0).arg(n).ignore();
            pipe.cmd("XADD").arg("stream").arg(format!("{}-{}", n / 7 + 1, n % 7)).arg("n").arg(n);
        }
        pipe.query_async::<()>(&mut from).await.unwrap();
    }
    let blob = vec![7_u8; 300_000];
    for n in 0..5 {
        cmd("RPUSH").arg("blobs").arg(n).arg(&blob).query_async::<()>(&mut from).await.unwrap();
    }
    let (report, _) = copying.run(Target::MustBeEmpty).await;
    assert_eq!(report.unwrap().keys(), 7);
    let questions = [
        "GET text",
        "LRANGE list 0 -1",
        "LRANGE blobs 0 -1",
        "ZRANGE zset 0 -1 WITHSCORES",
        "XRANGE stream - +",
        "HLEN hash",
        "SCARD set",
        "HGET hash 29999",
        "SISMEMBER set member",
    ];
    // Not compared with assert_eq, which would print megabytes.
    let (ours, theirs) = (ask(&copying.to, &questions).await, ask(&copying.from, &questions).await);
    for (question, (ours, theirs)) in questions.iter().zip(ours.iter().zip(&theirs)) {
        assert!(ours == theirs, "{question}");
    }
}

#[tokio::test]
async fn a_target_with_keys_is_refused_or_replaced_and_other_databases_are_left_alone() {
    let copying = Copying::start().await;
    ask(&copying.from, &["SET ours new"]).await;
    ask(&copying.to, &["SET ours old", "RPUSH theirs 1 2", "SELECT 3", "SET safe yes"]).await;
    let (refused, _) = copying.run(Target::MustBeEmpty).await;
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("2 keys in database 0") && message.contains("--replace"), "{message}");
    assert_eq!(ask(&copying.to, &["GET ours"]).await, [Value::BulkString(b"old".to_vec())]);
    let (replaced, _) = copying.run(Target::Replace).await;
    assert_eq!(replaced.unwrap().keys(), 1);
    let left = ask(&copying.to, &["DBSIZE", "GET ours", "SELECT 3", "GET safe"]).await;
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    assert_eq!(left, [Value::Int(1), text("new"), Value::Okay, text("yes")]);
}

#[tokio::test]
async fn urls_with_a_database_copy_one_into_one() {
    let copying = Copying::start().await;
    ask(&copying.from, &["SET a 0", "SELECT 5", "SET b 5"]).await;
    let (from, to) = (copying.from.url(), copying.to.url());
    let into_two = format!("{to}/2");
    let (refused, _) = run(&from, &into_two, Target::MustBeEmpty, |_| {}).await;
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("[0, 5]"), "{message}");
    let (done, _) = run(&format!("{from}/5"), &into_two, Target::MustBeEmpty, |_| {}).await;
    assert_eq!(done.unwrap().keys(), 1);
    assert_eq!(
        ask(&copying.to, &["DBSIZE", "SELECT 2", "GET b"]).await,
        [Value::Int(0), Value::Okay, Value::BulkString(b"5".to_vec())]
    );
}

#[tokio::test]
async fn a_source_that_changes_during_the_copy_is_noticed() {
    let copying = Copying::start().await;
    ask(&copying.from, &["RPUSH queue 1 2 3", "SET other 1"]).await;
    let port = copying.from.port();
    let mut changed = false;
    // Between the two passes, from a connection of its own.
    let change = |step: &Step| {
        if matches!(step, Step::Copied { .. }) && !std::mem::replace(&mut changed, true) {
            let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
            let mut connection = client.get_connection().unwrap();
            cmd("RPUSH").arg("queue").arg("4").query::<()>(&mut connection).unwrap();
        }
    };
    let (result, _) =
        run(&copying.from.url(), &copying.to.url(), Target::MustBeEmpty, change).await;
    let message = result.unwrap_err().to_string();
    assert!(message.contains("\"queue\"") && message.contains("stop all workers"), "{message}");
    assert!(!message.contains("other"), "{message}");
    // The next one knows what happened, and puts it right.
    let (again, _) = copying.run(Target::MustBeEmpty).await;
    let message = again.unwrap_err().to_string();
    assert!(message.contains("was not finished"), "{message}");
    assert_eq!(copying.run(Target::Replace).await.0.unwrap().keys(), 2);
    assert_eq!(ask(&copying.to, &[&format!("EXISTS {MARKER}")]).await, [Value::Int(0)]);
}

#[tokio::test]
async fn a_key_left_over_in_the_target_is_noticed() {
    let copying = Copying::start().await;
    ask(&copying.from, &["SET a 1"]).await;
    let port = copying.to.port();
    let add = |step: &Step| {
        if matches!(step, Step::Copied { .. }) {
            let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
            let mut connection = client.get_connection().unwrap();
            cmd("SADD").arg("stranger").arg("4").query::<()>(&mut connection).unwrap();
        }
    };
    let (result, _) = run(&copying.from.url(), &copying.to.url(), Target::MustBeEmpty, add).await;
    let message = result.unwrap_err().to_string();
    assert!(message.contains("1 strings in the source and 1 strings, 1 sets"), "{message}");
}

#[tokio::test]
async fn a_copy_that_breaks_off_leaves_a_mark_and_says_what_to_do() {
    let mut copying = Copying::start().await;
    for n in 0..20 {
        let commands: Vec<String> = (0..200).map(|m| format!("SET key-{n}-{m} x")).collect();
        ask(&copying.from, &commands.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let (from, to) = (copying.from.url(), copying.to.url());
    let target = std::sync::Mutex::new(&mut copying.to);
    let kill = |step: &Step| {
        if matches!(step, Step::Copied { keys, .. } if *keys > 1000) {
            target.lock().unwrap().kill();
        }
    };
    let (broken, _) = run(&from, &to, Target::MustBeEmpty, kill).await;
    let message = broken.unwrap_err().to_string();
    assert!(message.contains("broke off") && message.contains("--replace"), "{message}");
    copying.to.start_again().await;
    let (refused, _) = copying.run(Target::MustBeEmpty).await;
    assert!(refused.unwrap_err().to_string().contains("was not finished"));
    assert_eq!(copying.run(Target::Replace).await.0.unwrap().keys(), 4000);
}

#[tokio::test]
async fn a_server_is_not_copied_onto_itself() {
    let redis = Redis::start().await;
    ask(&redis, &["SET a 1"]).await;
    let other_name = format!("redis://localhost:{}/3", redis.port());
    let (result, _) = run(&redis.url(), &other_name, Target::Replace, |_| {}).await;
    assert!(matches!(result, Err(Error::SameServer { .. })));
}

#[tokio::test]
async fn consumer_groups_are_named_as_left_out() {
    let copying = Copying::start().await;
    ask(&copying.from, &["XADD log 1-1 a b", "XGROUP CREATE log readers 0"]).await;
    let report = copying.run(Target::MustBeEmpty).await.0.unwrap();
    assert_eq!(report.left_out, ["consumer groups of stream \"log\": readers"]);
}

#[tokio::test]
async fn a_queue_goes_on_where_it_was_copied_to() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(700)).await;
    let to = Redis::start().await;
    let (report, steps) = run(&stage.redis.url(), &to.url(), Target::MustBeEmpty, |_| {}).await;
    assert!(report.unwrap().keys() > 700);
    let warned = |step: &Step| matches!(step, Step::Warning(text) if text.contains("stop workers"));
    assert!(steps.iter().any(warned), "the test's own connections are named: {steps:?}");
    let (_broker, queue) = connect(&to.url()).await;
    let handler = Counting::default();
    let running = Running::start(&queue, config("w"), handler.clone());
    stampede_testkit::eventually(crate::stage::SOON, || async {
        let counts = queue.counts().await.map_err(|e| e.to_string())?;
        if counts.completed == 700 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    running.stop().await;
    let ids: BTreeSet<String> = handler.runs().into_keys().collect();
    assert_eq!(ids, jobs(700).into_iter().map(|job| job.id).collect());
}
