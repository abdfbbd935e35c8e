//! A panic inside a command: a read is answered with an error, a write ends the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use crate::command::{self, Command, Flags, Outcome, READ, WRITE};
use crate::db::Db;
use crate::reply::{Protocol, Reply};

/// A command that panics in the middle of its reply, in another database.
fn panicking(flags: Flags) -> Command {
    let row = command::find(b"get").copied();
    let run = |db: &mut Db, _: &[Bytes], reply: &mut Reply| -> crate::error::Result {
        db.select(7);
        reply.array(2);
        panic!("as a mistake of the engine would")
    };
    Command { name: "mistake", flags, run, ..row.unwrap() }
}

fn set(db: &mut Db, reply: &mut Reply) {
    let args = ["SET", "k", "v"].map(|arg| Bytes::from_static(arg.as_bytes()));
    command::call(db, &args, reply);
}

#[test]
fn a_read_that_panics_is_answered_with_an_error_and_nothing_has_changed() {
    let (mut db, mut reply) = (Db::new(), Reply::new(Protocol::Resp2));
    set(&mut db, &mut reply);
    let before = (db.selected(), db.changes(), db.effects().as_bytes().to_vec());
    let outcome = command::run(&mut db, &panicking(READ), &[], &mut reply);
    assert_eq!(outcome, Outcome::Failed);
    let text = "+OK\r\n-ERR internal error: the command has failed, and nothing was changed\r\n";
    assert_eq!(reply.as_bytes(), text.as_bytes());
    assert_eq!((db.selected(), db.changes(), db.effects().as_bytes().to_vec()), before);
    assert!(db.exists(b"k"));
}

#[test]
fn a_write_that_panics_goes_on_panicking_and_leaves_no_effect() {
    let (mut db, mut reply) = (Db::new(), Reply::new(Protocol::Resp2));
    let ends = catch_unwind(AssertUnwindSafe(|| {
        command::run(&mut db, &panicking(WRITE), &[], &mut reply);
    }));
    assert!(ends.is_err());
    assert!(db.effects().is_empty());
}
