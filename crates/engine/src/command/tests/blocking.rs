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
    assert_eq!(wait.args, args("XREAD BLOCK 0 STREAMS s 5-0"));
    run(&mut db, &args("XADD s 6-0 f v"));
    assert!(run(&mut db, &wait.args).contains("6-0"));
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
    ];
    assert_eq!(effects, expected);
}
