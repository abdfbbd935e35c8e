//! Scripts that loop or need too much memory, over connections: other clients get `BUSY` and are
//! served later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stampede_engine::Config;

use crate::process::{Options, Process};
use crate::wire::{Running, Value, Wire, eventually};

const ENDLESS: [&str; 3] = ["eval", "while true do end", "0"];

fn impatient(io_threads: usize) -> Config {
    Config {
        io_threads,
        busy_threshold: Duration::from_millis(100),
        script_memory: 32 << 20,
        allow_debug: true,
        ..Config::default()
    }
}

/// Runs a script on its own connection; the thread returns its reply.
fn in_background(server: &Running, script: &'static str) -> thread::JoinHandle<Value> {
    let mut client = server.connect();
    thread::spawn(move || client.call(&["eval", script, "0"]))
}

fn wait_until_busy(client: &mut Wire) {
    eventually("told BUSY", || client.say("get x").text().starts_with("BUSY "));
}

#[test]
fn others_are_told_busy_and_a_new_client_stops_the_script() {
    for io_threads in [1, 4] {
        let server = Running::start(impatient(io_threads));
        let mut old: Vec<Wire> = (0..8).map(|_| server.connect()).collect();
        let script = in_background(&server, ENDLESS[1]);
        old.iter_mut().for_each(wait_until_busy);
        let busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                    SHUTDOWN NOSAVE.";
        for client in &mut old {
            assert_eq!(client.say("incr n").text(), busy);
            assert_eq!(client.say("ping").text(), busy);
        }
        // On any loop, including the one that runs the script.
        for _ in 0..8 {
            assert_eq!(server.connect().say("set x 1").text(), busy);
        }
        let mut new = server.connect();
        assert_eq!(new.say("script kill"), Value::Status("OK".into()));
        let killed = script.join().unwrap().text();
        assert!(killed.starts_with("ERR Script killed by user with SCRIPT KILL"), "{killed}");
        for client in old.iter_mut().chain([&mut new]) {
            eventually("normal again", || client.say("get x") == Value::Nil);
        }
        assert!(new.say("script kill").text().starts_with("NOTBUSY "));
        server.assert_serves();
    }
}

#[test]
fn a_transaction_that_was_told_busy_is_not_run_in_part() {
    for io_threads in [1, 4] {
        let server = Running::start(impatient(io_threads));
        let mut client = server.connect();
        assert_eq!(client.say("multi").text(), "OK");
        assert_eq!(client.say("set a 1").text(), "QUEUED");
        let script = in_background(&server, ENDLESS[1]);
        wait_until_busy(&mut server.connect());
        assert!(client.say("set b 1").text().starts_with("BUSY "));
        assert_eq!(server.connect().say("script kill").text(), "OK");
        script.join().unwrap();
        eventually("normal again", || server.connect().say("ping").text() == "PONG");
        assert!(client.say("exec").text().starts_with("EXECABORT "));
        assert_eq!(client.say("mget a b"), Value::Array(vec![Value::Nil, Value::Nil]));
    }
}

/// Commands while a script is busy, and whether they are answered as redis-server answers them.
#[rustfmt::skip]
const WHILE_BUSY: &[&str] = &[
    "PING", "MULTI", "MULTI", "INCR n", "EXEC", "EXEC", "DISCARD", "WATCH k", "MULTI", "WATCH k", "DISCARD", "DISCARD", "UNWATCH", "NOSUCH x",
    "GET", "MULTI", "MULTI x", "EXEC x", "DISCARD", "MULTI", "SHUTDOWN NOSAVE", "DISCARD", "MULTI", "NOSUCH x", "EXEC", "MULTI", "INCR n",
];
/// Commands of the same client when the script has been killed.
const AFTERWARDS: &[&str] =
    &["INCR n", "EXEC", "GET n", "INCR n", "MULTI", "INCR n", "EXEC", "DISCARD", "EXEC"];

#[test]
fn a_transaction_that_begins_while_a_script_is_busy_is_answered_as_redis_answers_it() {
    let redis = crate::redis::Server::start();
    for io_threads in [1, 4] {
        let engine = Running::start(impatient(io_threads));
        let answers = |address: std::net::SocketAddr| -> Vec<String> {
            let mut control = Wire::connect(address);
            control.say("FLUSHALL");
            control.say("CONFIG SET busy-reply-threshold 100");
            // One client has a session before the script begins, the other has not.
            let (mut old, mut looping) = (Wire::connect(address), Wire::connect(address));
            old.say("PING");
            let script = thread::spawn(move || looping.call(&ENDLESS));
            wait_until_busy(&mut control);
            let mut new = Wire::connect(address);
            let mut all = Vec::new();
            for client in [&mut old, &mut new] {
                all.extend(WHILE_BUSY.iter().map(|line| client.say(line).text()));
            }
            all.push(control.say("SCRIPT KILL").text());
            script.join().unwrap();
            eventually("normal again", || control.say("PING").text() == "PONG");
            for client in [&mut old, &mut new] {
                all.extend(AFTERWARDS.iter().map(|line| client.say(line).text()));
            }
            all
        };
        let theirs = answers(([127, 0, 0, 1], redis.port).into());
        let ours = answers(engine.address);
        let busy = WHILE_BUSY.iter().chain(WHILE_BUSY).chain(&["SCRIPT KILL"]);
        let lines = busy.chain(AFTERWARDS).chain(AFTERWARDS);
        for (line, (our, their)) in lines.zip(ours.iter().zip(&theirs)) {
            assert_eq!(our, their, "{line} on {io_threads} loops");
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn a_watch_that_begins_while_a_script_is_busy_is_kept() {
    let server = Running::start(impatient(1));
    let (mut client, mut other) = (server.connect(), server.connect());
    let script = in_background(&server, ENDLESS[1]);
    wait_until_busy(&mut other);
    assert_eq!(client.say("watch k").text(), "OK");
    assert_eq!(other.say("script kill").text(), "OK");
    script.join().unwrap();
    eventually("normal again", || other.say("ping").text() == "PONG");
    for (change, expected) in [(true, Value::Nil), (false, Value::Array(vec![Value::Nil]))] {
        client.say("get k");
        if change {
            other.say("set k v");
            other.say("del k");
        }
        assert_eq!(client.say("multi").text(), "OK");
        assert_eq!(client.say("get k").text(), "QUEUED");
        assert_eq!(client.say("exec"), expected);
    }
}

#[test]
fn a_client_that_defers_without_end_is_refused() {
    let server = Running::start(impatient(1));
    let (mut client, mut other) = (server.connect(), server.connect());
    let script = in_background(&server, ENDLESS[1]);
    wait_until_busy(&mut other);
    let answers: Vec<String> = (0..1100).map(|_| client.say("watch k").text()).collect();
    assert_eq!(answers.iter().filter(|answer| *answer == "OK").count(), 1000);
    assert!(answers[1099].starts_with("BUSY "));
    assert_eq!(other.say("script kill").text(), "OK");
    script.join().unwrap();
    eventually("normal again", || client.say("ping").text() == "PONG");
}

#[test]
fn a_password_given_while_a_script_runs_counts() {
    for io_threads in [1, 4] {
        let password = Some("secret".to_owned());
        let server = Running::start(Config { password, ..impatient(io_threads) });
        // Some clients have a session before the script begins, some have not.
        let mut old: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        assert!(old[0].say("get x").text().starts_with("NOAUTH "));
        let mut first = server.connect();
        assert_eq!(first.say("auth secret").text(), "OK");
        let script = thread::spawn(move || first.call(&ENDLESS));
        eventually("told BUSY", || {
            let mut client = server.connect();
            client.say("auth secret");
            client.say("get x").text().starts_with("BUSY ")
        });
        let mut clients: Vec<Wire> =
            old.into_iter().chain((0..4).map(|_| server.connect())).collect();
        for client in &mut clients {
            assert!(client.say("script kill").text().starts_with("NOAUTH "));
            assert!(client.say("auth wrong").text().starts_with("WRONGPASS "));
            assert_eq!(client.say("auth default secret").text(), "OK");
        }
        assert_eq!(clients[0].say("script kill").text(), "OK");
        script.join().unwrap();
        for client in &mut clients {
            eventually("normal again", || client.say("get x") == Value::Nil);
        }
    }
}

#[test]
fn clients_that_were_ready_together_with_the_script_are_told_busy_too() {
    let server = Running::start(impatient(1));
    let mut sleeper = server.connect();
    let mut script = server.connect();
    let mut others: Vec<Wire> = (0..20).map(|_| server.connect()).collect();
    // All this arrives while the loop is busy, so it finds all clients ready at once.
    use std::io::Write;
    sleeper.stream.write_all(b"debug sleep 0.5\r\n").unwrap();
    thread::sleep(Duration::from_millis(100));
    script.stream.write_all(&crate::wire::request(&ENDLESS)).unwrap();
    for client in &mut others {
        client.stream.write_all(b"get x\r\n").unwrap();
        client.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    let answers: Vec<String> = others
        .iter_mut()
        .map(|client| client.read().map_or_else(|error| error.to_string(), |reply| reply.text()))
        .collect();
    assert_eq!(server.connect().say("script kill").text(), "OK");
    for answer in answers {
        assert!(answer.starts_with("BUSY ") || answer == "Nil", "{answer}");
    }
}

#[test]
fn nobody_is_forgotten_when_scripts_end_while_clients_are_told_busy() {
    for io_threads in [1, 3] {
        let config = Config { busy_threshold: Duration::from_millis(1), ..impatient(io_threads) };
        let server = Running::start(config);
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..12)
            .map(|_| {
                let (mut client, stop) = (server.connect(), stop.clone());
                thread::spawn(move || {
                    let mut answers = (0, 0);
                    while !stop.load(Ordering::Relaxed) {
                        // A reply that never comes is the failure: the read times out after a
                        // minute.
                        match client.say("ping") {
                            Value::Error(text) if text.starts_with("BUSY ") => answers.0 += 1,
                            other => {
                                assert_eq!(other, Value::Status("PONG".into()));
                                answers.1 += 1;
                            }
                        }
                    }
                    answers
                })
            })
            .collect();
        let mut scripts = server.connect();
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            scripts.call(&["eval", "for i = 1, ARGV[1] do end", "0", "1000000"]);
        }
        stop.store(true, Ordering::Relaxed);
        let answers: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        println!("{io_threads} loops, (busy, pong): {answers:?}");
        server.assert_serves();
    }
}

#[test]
fn a_script_that_has_written_cannot_be_stopped_and_leaves_nothing_when_the_server_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { dir: Some(dir.path()), policy: "always", ..Options::default() };
    let server = Process::start(&options);
    let mut client = server.connect();
    assert_eq!(client.say("config set busy-reply-threshold 50").text(), "OK");
    let mut looping = server.connect();
    let waits = thread::spawn(move || {
        looping.try_call(&["eval", "redis.call('set', 'half', 1) while true do end", "0"])
    });
    wait_until_busy(&mut client);
    assert!(client.say("script kill").text().starts_with("UNKILLABLE "));
    assert!(server.connect().say("script kill").text().starts_with("UNKILLABLE "));
    server.kill();
    assert!(waits.join().unwrap().is_err());
    let server = Process::start(&options);
    assert_eq!(server.connect().say("get half"), Value::Nil);
    server.stop();
}

#[test]
fn a_script_past_its_time_is_stopped_without_being_asked() {
    for io_threads in [1, 4] {
        let config = Config { script_time: Duration::from_millis(300), ..impatient(io_threads) };
        let server = Running::start(config);
        let began = Instant::now();
        let killed = server.connect().call(&ENDLESS).text();
        assert!(killed.starts_with("ERR Script killed by user"), "{killed}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        server.assert_serves();
    }
}

#[test]
fn a_script_that_wants_too_much_fails_and_others_are_served() {
    let server = Process::start(&Options::default());
    let mut client = server.connect();
    let before = server.memory_mb();
    for (script, reason) in [
        (
            "local s, t = ('x'):rep(1e5), {} for i = 1, 1e9 do t[i] = s .. i end",
            "not enough memory",
        ),
        ("return string.rep('x', 2e9)", "not enough memory"),
        ("local s = 'x' while true do s = s .. s end", "not enough memory"),
        ("local s = 'xxxxxxxx' while true do s = s:rep(8) end", "not enough memory"),
        (
            "local t = {} while true do t = {t, {}, {}, {}, {1, 2, 3, 4, 5}} end",
            "not enough memory",
        ),
        ("local function f(n) return 1 + f(n + 1) end return f(1)", "stack overflow"),
        ("return ('a'):rep(3000):find(('a-'):rep(30) .. 'b')", "Script killed"),
        ("while true do pcall(function() while true do end end) end", "Script killed"),
        ("while true do redis.pcall('get', 'x') end", "Script killed"),
    ] {
        let answer = client.call(&["eval", script, "0"]);
        let text = answer.text();
        assert!(matches!(answer, Value::Error(_)) && text.contains(reason), "{script}: {answer:?}");
        crate::wire::assert_serves(server.address);
    }
    let peak = server.peak_mb() - before;
    println!("hostile scripts: {peak} MB at most");
    assert!(peak < 400, "{peak} MB");
    server.stop();
}

#[test]
fn an_answer_without_end_ends() {
    use std::io::{Read, Write};
    let server = Running::start(impatient(1));
    let mut client = server.connect();
    let script = "local t = {} t[1] = t return t";
    client.stream.write_all(&crate::wire::request(&["eval", script, "0"])).unwrap();
    client.stream.write_all(&crate::wire::request(&["echo", "the end"])).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"the end\r\n") {
        let mut piece = [0; 1 << 16];
        let count = client.stream.read(&mut piece).unwrap();
        assert!(count > 0 && answer.len() < 1 << 20, "{} bytes", answer.len());
        answer.extend_from_slice(&piece[..count]);
    }
    println!("an answer in itself: {} bytes", answer.len());
    server.assert_serves();
}

#[test]
#[ignore = "takes half a minute and a gigabyte"]
fn a_script_that_writes_without_end_is_stopped_and_writing_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = Process::start(&Options { dir: Some(dir.path()), ..Options::default() });
    let mut client = server.connect();
    let script = "while true do redis.call('set', KEYS[1], ARGV[1]) end";
    let told = client.call(&["eval", script, "1", "k", &"x".repeat(8 << 20)]).text();
    assert!(told.contains("the script has written too much"), "{told}");
    eventually("writes go on", || client.say("set after 1").text() == "OK");
    let peak = server.peak_mb();
    println!("a script that writes without end: {peak} MB at most");
    assert!(peak < 2500, "{peak} MB");
    server.stop();
}

#[test]
fn a_script_that_is_about_to_end_when_the_server_stops_ends_in_good_order() {
    for io_threads in [1, 4] {
        // The loop takes a quarter of a second, and many times as long on a busy machine.
        let config = Config {
            busy_threshold: Duration::from_millis(20),
            script_patience: Duration::from_secs(60),
            ..impatient(io_threads)
        };
        let server = Running::start(config);
        let mut client = server.connect();
        let slow = "for i = 1, 4e7 do end redis.call('set', 'late', 1) return 'done'";
        let script = in_background(&server, slow);
        wait_until_busy(&mut client);
        drop(server);
        assert_eq!(script.join().unwrap().text(), "done");
    }
}

#[test]
fn a_server_stops_although_a_script_loops() {
    for io_threads in [1, 4] {
        let server = Running::start(impatient(io_threads));
        let mut client = server.connect();
        let mut looping = server.connect();
        let script = thread::spawn(move || looping.try_call(&ENDLESS));
        wait_until_busy(&mut client);
        let began = Instant::now();
        drop(server);
        assert!(began.elapsed() < Duration::from_secs(10), "stopped after {:?}", began.elapsed());
        let _ = script.join().unwrap();
    }
}

#[test]
fn a_server_stops_although_a_script_that_has_written_loops() {
    let server = Running::start(impatient(1));
    let mut client = server.connect();
    let mut looping = server.connect();
    let script = thread::spawn(move || {
        looping.try_call(&["eval", "redis.call('set', 'half', 1) while true do end", "0"])
    });
    wait_until_busy(&mut client);
    assert!(client.say("script kill").text().starts_with("UNKILLABLE "));
    let began = Instant::now();
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(10), "stopped after {:?}", began.elapsed());
    let _ = script.join().unwrap();
}

#[test]
fn scripts_that_leave_large_strings_behind_do_not_starve_those_that_follow() {
    let server = Running::start(Config::default());
    let mut client = server.connect();
    let text = "x".repeat(4 << 20);
    assert_eq!(client.call(&["set", "text", &text]).text(), "OK");
    // Each run leaves many times its own size of garbage, in a few allocations.
    let script = "local s = redis.call('get', KEYS[1]) return #(s .. ARGV[1]) + #string.sub(s, 2)";
    for round in 0..200 {
        let said = client.call(&["eval", script, "1", "text", &round.to_string()]);
        assert!(said.int() >= 8 << 20, "{said:?}");
    }
}
