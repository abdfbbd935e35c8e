//! Blocking commands: the block request they leave, and what makes them ready.

use crate::command::call;
use crate::db::{Blocking, Db};
use crate::reply::{Protocol, Reply};
use bytes::Bytes;

fn args(line: &str) -> Vec<Bytes> {
    line.split(' ').map(|arg| Bytes::from(arg.to_owned())).collect()
}

fn run(db: &mut Db, args: &[Bytes]) -> String {
    let mut reply = Reply::new(Protocol::Resp2);
    call(db, args, &mut reply);
    String::from_utf8_lossy(reply.as_bytes()).into_owned()
}

fn blocking_db() -> Db {
    let mut db = Db::new();
    db.set_time_us(1_000_000);
    db.set_blocking(Blocking::Allowed);
    db
}

#[test]
fn a_keyspace_can_move_to_its_executor() {
    fn send<T: Send>() {}
    send::<Db>();
}

#[test]
fn a_command_that_waits_says_for_what_and_how_long_and_does_not_reply() {
    let mut db = blocking_db();
    assert_eq!(run(&mut db, &args("BZPOPMIN a b 0.0015")), "");
    let wait = db.take_block_request().unwrap();
    assert_eq!(wait.keys, args("a b"));
    assert_eq!(wait.deadline_ms, Some(1002));
    assert_eq!(run(&mut db, &args("BLPOP q 0")), "");
    assert_eq!(db.take_block_request().unwrap().deadline_ms, None);
    assert!(db.effects().is_empty());
}

#[test]
fn the_same_arguments_succeed_when_the_key_is_ready() {
    let mut db = blocking_db();
    run(&mut db, &args("BZPOPMIN marker 5"));
    let wait = db.take_block_request().unwrap();
    for key in &wait.keys {
        db.await_key(db.selected(), key);
    }
    run(&mut db, &args("ZADD marker 7 0"));
    let ready: Vec<_> = db.take_ready().into_iter().map(|(_, key)| key.to_vec()).collect();
    assert_eq!(ready, [b"marker"]);
    assert_eq!(run(&mut db, &wait.args), "*3\r\n$6\r\nmarker\r\n$1\r\n0\r\n$1\r\n7\r\n");
    assert!(db.take_block_request().is_none());
}

#[test]
fn the_dollar_of_a_stream_is_fixed_at_the_call() {
    let mut db = blocking_db();
    run(&mut db, &args("XADD s 5-0 f v"));
    assert_eq!(run(&mut db, &args("XREAD BLOCK 0 STREAMS s $")), "");
    let wait = db.take_block_request().unwrap();
    assert_eq!(wait.args, args("XREAD COUNT 1000 BLOCK 0 STREAMS s 5-0"));
    run(&mut db, &args("XADD s 6-0 f v"));
    assert!(run(&mut db, &wait.args).contains("6-0"));
}

#[test]
fn a_group_waits_for_new_entries_only() {
    let mut db = blocking_db();
    run(&mut db, &args("XADD s 5-0 f v"));
    run(&mut db, &args("XGROUP CREATE s g $"));
    assert_eq!(run(&mut db, &args("XREADGROUP GROUP g c NOACK BLOCK 0 STREAMS s >")), "");
    let wait = db.take_block_request().unwrap();
    assert_eq!(wait.args, args("XREADGROUP GROUP g c NOACK COUNT 1000 BLOCK 0 STREAMS s >"));
    let history = "*1\r\n*2\r\n$1\r\ns\r\n*0\r\n";
    assert_eq!(run(&mut db, &args("XREADGROUP GROUP g c BLOCK 0 STREAMS s 0")), history);
    run(&mut db, &args("XADD s 6-0 f v"));
    assert!(run(&mut db, &wait.args).contains("6-0"));
    assert!(db.take_block_request().is_none());
}

#[test]
fn the_end_of_a_stream_makes_its_key_ready_for_stream_readers() {
    for end in ["DEL s", "SET s v", "FLUSHALL", "RENAME s t", "XGROUP DESTROY s g"] {
        let mut db = blocking_db();
        run(&mut db, &args("XGROUP CREATE s g $ MKSTREAM"));
        db.await_key(0, b"s");
        assert!(db.take_ready().is_empty());
        db.add_stream_reader();
        run(&mut db, &args(end));
        assert_eq!(db.take_ready().len(), 1, "{end}");
    }
}

#[test]
fn in_a_transaction_nobody_waits() {
    let mut db = blocking_db();
    db.set_blocking(Blocking::Denied);
    assert_eq!(run(&mut db, &args("BLPOP q 0")), "*-1\r\n");
    assert_eq!(run(&mut db, &args("BLMOVE q p LEFT LEFT 0")), "$-1\r\n");
    assert!(db.take_block_request().is_none());
}

#[test]
fn effects_are_absolute_and_never_wait() {
    let mut db = blocking_db();
    for line in [
        "SET k v PX 100",
        "EXPIRE k 10",
        "RPUSH q a b",
        "BLPOP q 0",
        "XADD s MAXLEN ~ 100 * f v",
        "INCRBYFLOAT n 1.5",
        "GETDEL k",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c BLOCK 0 STREAMS s >",
        "XCLAIM s g d 0 1000-0 IDLE 400",
        "XACK s g 1000-0",
    ] {
        run(&mut db, &args(line));
    }
    let record = db.effects().take();
    let effects: Vec<String> = crate::db::effects::decode(&record)
        .map(|effect| {
            let words = effect.unwrap().1;
            words.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let expected = [
        "SET k v PXAT 1100",
        "PEXPIREAT k 11000",
        "RPUSH q a b",
        "LPOP q",
        "XADD s 1000-0 f v",
        "SET n 1.5 KEEPTTL",
        "DEL k",
        "XGROUP.POSITION s g 0-0 -1",
        "XGROUP.POSITION s g 1000-0 1",
        "XGROUP.CONSUMER s g c 1000 1000-0 1000 1",
        "XGROUP.CONSUMER s g d 1000 1000-0 600 2",
        "XACK s g 1000-0",
    ];
    assert_eq!(effects, expected);
}
