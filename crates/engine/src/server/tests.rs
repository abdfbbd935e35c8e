//! Tests of a whole server on a disk that hangs, and with records that are not taken.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::shared::Refusal;
use super::*;
use crate::journal::tests::faulty_disk::FaultyDisk;

/// A timeout that is long enough on any machine.
const LONG: Duration = Duration::from_secs(30);

/// A server with one event loop, whose journal is on a faulty disk.
fn start(disk: &FaultyDisk, fsync: Fsync) -> Server {
    let journal =
        journal::Config { fsync, stall_limit: Duration::from_millis(300), ..Default::default() };
    let started = Server::start(Config {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        disk: Some(Arc::new(disk.clone())),
        journal,
        io_threads: 1,
        busy_threshold: Duration::from_millis(200),
        allow_debug: true,
        ..Config::default()
    });
    started.unwrap()
}

/// A connection; requests are lines, replies are read as lines.
struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.tcp_addr().unwrap()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// The next line of a reply.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    fn say(&mut self, line: &str) -> String {
        self.send(line);
        self.line()
    }
}

fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_true() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::yield_now();
    }
}

/// The disk stops in the middle of a write; later it goes on.
fn a_disk_hangs(fsync: Fsync) {
    let disk = FaultyDisk::new(1);
    let server = start(&disk, fsync);
    let (mut writer, mut other) = (Client::connect(&server), Client::connect(&server));
    assert_eq!(writer.say("set k before"), "+OK");
    assert_eq!(other.say("ping"), "+PONG");
    disk.close_gate(true);
    writer.send("set k after");
    let appended = || server.shared.executor.lock().position;
    eventually("the write has run", || appended() > server.shared.safe());
    // Nobody waits for the disk but clients who wait for their records.
    for _ in 0..20 {
        assert_eq!(other.say("ping"), "+PONG", "{fsync:?}");
    }
    eventually("writes are refused", || server.shared.refusal() == Refusal::Temporary);
    let refused = other.say("set x 1");
    assert!(refused.starts_with("-MISCONF") && refused.contains("has not answered"), "{refused}");
    assert_eq!((other.say("get k").as_str(), other.line().as_str()), ("$5", "after"));
    // Nobody knows whether the write is recorded: its client is told neither.
    assert_eq!(writer.reader.read(&mut [0]).unwrap_or(0), 0, "{fsync:?}");
    let mut late = Client::connect(&server);
    assert_eq!(late.say("ping"), "+PONG");
    disk.close_gate(false);
    eventually("writes are taken", || other.say("set x 2") == "+OK");
    assert_eq!((late.say("get x").as_str(), late.line().as_str()), ("$1", "2"));
    server.stop().unwrap();
    let server = start(&disk, fsync);
    let mut client = Client::connect(&server);
    assert_eq!((client.say("get k").as_str(), client.line().as_str()), ("$5", "after"));
}

#[test]
fn a_disk_that_does_not_answer_refuses_writes_and_stops_nobody_else_under_everysec() {
    a_disk_hangs(Fsync::EverySec);
}

#[test]
fn a_disk_that_does_not_answer_refuses_writes_and_stops_nobody_else_under_never() {
    a_disk_hangs(Fsync::Never);
}

#[test]
fn a_disk_that_does_not_answer_refuses_writes_and_stops_nobody_else_under_always() {
    a_disk_hangs(Fsync::Always);
}

#[test]
fn a_disk_that_answers_late_costs_time_only() {
    let disk = FaultyDisk::new(1);
    let server = start(&disk, Fsync::EverySec);
    let (mut writer, mut other) = (Client::connect(&server), Client::connect(&server));
    for n in 1..=10 {
        disk.close_gate(true);
        writer.send("incr n");
        eventually("the loop waits for the disk", || {
            other.say("ping");
            server.shared.loops[0].writes_out.load(Ordering::SeqCst)
        });
        other.send("incr n");
        disk.close_gate(false);
        assert_eq!(writer.line(), format!(":{}", 2 * n - 1));
        assert_eq!(other.line(), format!(":{}", 2 * n));
    }
}

/// A client that waits for an element, and its id.
fn waiting(server: &Server) -> (Client, String) {
    let mut client = Client::connect(server);
    let id = client.say("client id").replace(':', "");
    client.send("blpop list 0");
    eventually("blocked", || server.shared.executor.lock().blocked.len() == 1);
    (client, id)
}

#[test]
fn a_write_that_is_not_recorded_is_an_error_and_nobody_is_told_of_it() {
    let server = start(&FaultyDisk::new(1), Fsync::EverySec);
    let (mut waiting, id) = waiting(&server);
    let mut subscriber = Client::connect(&server);
    subscriber.send("subscribe news");
    subscriber.lines(6);
    let mut client = Client::connect(&server);
    assert_eq!(client.say("set k v"), "+OK");
    server.shared.journal.as_ref().unwrap().fail_append_after(0);
    for line in ["multi", "lpush list element", "publish news unrecorded"] {
        client.say(line);
    }
    let told = client.say("exec");
    assert!(told.starts_with("-MISCONF Errors writing to the journal"), "{told}");
    // Later writes must not depend on it. Reads work.
    assert!(client.say("set k w").starts_with("-MISCONF"));
    assert_eq!((client.say("get k").as_str(), client.line().as_str()), ("$1", "v"));
    // What both hear next comes after it.
    assert_eq!(client.say("publish news later"), ":1");
    assert_eq!(subscriber.lines(7).pop().unwrap(), "later");
    assert_eq!(client.say(&format!("client unblock {id}")), ":1");
    assert_eq!(waiting.line(), "*-1");
}

#[test]
fn an_element_whose_removal_is_not_recorded_is_given_to_nobody() {
    let server = start(&FaultyDisk::new(1), Fsync::EverySec);
    let (mut waiting, _) = waiting(&server);
    let mut client = Client::connect(&server);
    // The push is recorded, the pop of the waiting client is not.
    server.shared.journal.as_ref().unwrap().fail_append_after(1);
    assert_eq!(client.say("lpush list element"), ":1");
    let told = waiting.line();
    assert!(told.starts_with("-MISCONF Errors writing to the journal"), "{told}");
    assert_eq!(waiting.say("ping"), "+PONG");
}

#[test]
fn replies_that_were_held_before_a_script_became_busy_are_sent() {
    let server = start(&FaultyDisk::new(1), Fsync::EverySec);
    let clients = || Client::connect(&server);
    let (mut sleeper, mut writer, mut script) = (clients(), clients(), clients());
    for client in [&mut sleeper, &mut writer, &mut script] {
        assert_eq!(client.say("ping"), "+PONG");
    }
    // Both requests arrive while the loop sleeps, so that they are served in one round.
    sleeper.send("debug sleep 0.3");
    eventually("it sleeps", || server.shared.executor.is_locked());
    writer.send("set k v");
    script.send("eval \"while true do end\" 0");
    assert_eq!(sleeper.line(), "+OK");
    assert_eq!(writer.line(), "+OK");
    // A loop that was held up may serve the script a round later.
    eventually("the script runs", || server.shared.interrupt.running_for().is_some());
    assert_eq!(writer.say("script kill"), "+OK");
    let told = script.line();
    assert!(told.contains("Script killed by user"), "{told}");
}
