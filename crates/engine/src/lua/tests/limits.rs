//! Scripts that exceed their limits, and the VM afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use crate::lua::host::Level;
use crate::lua::interrupt::KillError;
use crate::lua::{Access, Call, Limits, Scripts, Source};
use crate::reply::{Protocol, Reply};
use bytes::Bytes;

use super::fake_host::FakeHost;

fn run(scripts: &mut Scripts, host: &mut FakeHost, script: &str, limits: Limits) -> String {
    let mut reply = Reply::new(Protocol::Resp2);
    let call = Call { keys: &[], args: &[], access: Access::Write, limits };
    scripts.eval(host, Source::Text(script.as_bytes()), call, &mut reply);
    String::from_utf8_lossy(reply.as_bytes()).into_owned()
}

/// Little memory; time enough for a busy machine, so that only memory can stop a script.
fn small() -> Limits {
    Limits { time: Some(Duration::from_secs(60)), memory: 16 << 20 }
}

/// Runs a hostile script and checks that the next script works.
fn survives(script: &str, expected: &str) {
    let (limits, seconds) = if expected.contains("killed") {
        (Limits { time: Some(Duration::from_millis(50)), ..small() }, 10)
    } else {
        (small(), 60)
    };
    let (mut scripts, mut host) = (Scripts::new("7.0.15"), FakeHost::default());
    let began = Instant::now();
    let reply = run(&mut scripts, &mut host, script, limits);
    assert!(reply.contains(expected), "{script}: {reply}");
    assert!(began.elapsed() < Duration::from_secs(seconds), "{script} took {:?}", began.elapsed());
    for _ in 0..3 {
        let after = run(
            &mut scripts,
            &mut host,
            "local t = {} for i = 1, 1000 do t[i] = 'x' .. i end return #t + redis.call('incr', 'n') * 0",
            small(),
        );
        assert_eq!(after, ":1000\r\n", "after {script}");
    }
}

#[test]
fn a_script_past_its_time_is_stopped() {
    let killed = "-ERR Script killed by user with SCRIPT KILL... script: ";
    survives("while true do end", killed);
    survives("while true do pcall(function() while true do end end) end", killed);
    survives("local function f() while true do end end while true do xpcall(f, f) end", killed);
    survives("coroutine.wrap(function() while true do end end)()", killed);
    survives("while true do redis.call('get', 'x') end", killed);
    survives("while true do redis.pcall('get', 'x') end", killed);
    survives("while true do pcall(redis.call, 'get', 'x') end", killed);
    survives("for i = 1, math.huge do local s = tostring(i) end", killed);
    survives("table.sort({1, 2, 3}, function() while true do end end)", killed);
    survives("return ('x'):gsub('x', function() while true do end end)", killed);
    survives("load(function() return ' ' end)", killed);
    survives("local t = {} for i = 1, 40 do t = {t, t} end return cjson.encode(t)", killed);
    survives(
        "local t = {} for i = 1, 15 do local u = {} for j = 1, 1000 do u[j] = t end t = u end return cmsgpack.pack(t)",
        killed,
    );
    survives(
        "local f = coroutine.wrap(function() pcall(function() while true do end end) end) pcall(f) f()",
        killed,
    );
    survives(
        "coroutine.resume(coroutine.create(function() while true do end end)) redis.call('set', 'x', 1)",
        killed,
    );
}

#[test]
fn a_script_that_needs_too_much_memory_fails_and_the_vm_lives() {
    survives("local t = {} for i = 1, 1e9 do t[i] = 'x' .. i end", "not enough memory");
    survives("return #string.rep('x', 1e9)", "not enough memory");
    survives("local s = 'x' while true do s = s .. s end", "not enough memory");
    survives("local s = 'xxxxxxxx' while true do s = s:rep(8) end", "not enough memory");
    survives("return string.rep('', 2^31 - 1)", "$0\r\n");
    survives("local t = {} for i = 1, 1e7 do t[i] = {} end", "not enough memory");
    survives(
        "return table.concat({('x'):rep(8e6), ('x'):rep(8e6), ('x'):rep(8e6)})",
        "not enough memory",
    );
    survives(
        "redis.call('set', 'x', ('x'):rep(7e6)) local t = {} for i = 1, 9 do t[i] = redis.call('get', 'x') .. i end",
        "not enough memory",
    );
    survives(
        "local t = {('x'):rep(1000)} for i = 1, 40 do t = {t, t} end return cjson.encode(t)",
        "not enough memory",
    );
    survives(
        "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(1000) end for i = 1, 12 do local u = {} for j = 1, 1000 do u[j] = t end t = u end return cmsgpack.pack(t)",
        "not enough memory",
    );
    survives("return loadstring('return \"' .. ('x'):rep(7e6) .. '\"') and 1", "not enough memory");
    survives("return pcall(string.rep, 'x', 1e9) and 1 or 'caught'", "caught");
    survives(
        "local ok = true while ok do ok = pcall(string.rep, 'x', 2e9) end return 'caught'",
        "caught",
    );
    survives("local t = {} collectgarbage('stop') for i = 1, 1e6 do t = {i} end return 'ok'", "ok");
}

#[test]
fn deep_recursion_and_odd_ranges_fail_in_good_order() {
    survives("local function f(n) return f(n + 1) + 1 end return f(1)", "stack overflow");
    survives("local function f() return pcall(f) end return f() and 1", ":1");
    survives(
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end return t.x",
        "overflow",
    );
    survives("return unpack({}, 0, 2147483647)", "too many results to unpack");
    survives("return unpack({}, -2147483648, 2147483647)", "too many results to unpack");
    survives("table.insert({}, -2147483648, 1)", "position out of bounds");
    survives(
        "local s = ('('):rep(1000) .. '1' .. (')'):rep(1000) return loadstring('return ' .. s) and 1 or 'refused'",
        "refused",
    );
    survives(
        "local f = string.gsub return {pcall(f, ('x'):rep(300), ('(x)'):rep(40), '')}",
        "too many captures",
    );
}

#[test]
fn a_backtracking_pattern_is_stopped() {
    let killed = "Script killed by user";
    survives("return ('a'):rep(3000):find(('a-'):rep(30) .. 'b')", killed);
    survives("return ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(40) .. 'b')", killed);
    survives("return ('a'):rep(3000):gsub(('.-'):rep(20) .. 'b', '')", killed);
    survives("for _ in ('a'):rep(3000):gmatch(('.*'):rep(20) .. 'b') do end", killed);
    survives("return ('a'):rep(100000):find(('a?'):rep(100000))", "pattern too complex");
    survives("return ('a'):rep(16e5):find(('a'):rep(8e5) .. 'b', 1, true)", "$-1");
    survives("return pcall(string.find, ('a'):rep(3000), ('a-'):rep(30) .. 'b')", killed);
}

#[test]
fn a_script_that_has_written_runs_to_its_end() {
    let (mut scripts, mut host) = (Scripts::new("7.0.15"), FakeHost::default());
    let limits = Limits { time: Some(Duration::from_millis(20)), memory: 16 << 20 };
    let script = "redis.call('set', 'x', 1) for i = 1, 2e7 do end return 'done'";
    assert_eq!(run(&mut scripts, &mut host, script, limits), "$4\r\ndone\r\n");
}

#[test]
fn what_a_failing_script_did_stays() {
    let (mut scripts, mut host) = (Scripts::new("7.0.15"), FakeHost::default());
    let reply = run(&mut scripts, &mut host, "redis.call('set', 'x', 'kept') error('no')", small());
    assert!(reply.starts_with("-ERR user_script:1: no script: "), "{reply}");
    assert_eq!(
        run(&mut scripts, &mut host, "return redis.call('get', 'x')", small()),
        "$4\r\nkept\r\n"
    );
}

#[test]
fn another_thread_stops_a_script_that_has_not_written() {
    let mut scripts = Scripts::new("7.0.15");
    let interrupt = scripts.interrupt();
    assert_eq!(interrupt.kill(), Err(KillError::NotBusy));
    assert_eq!(interrupt.running_for(), None);
    let killer = thread::spawn(move || {
        while interrupt.running_for().is_none_or(|spent| spent < Duration::from_millis(20)) {
            thread::yield_now();
        }
        interrupt.kill()
    });
    let limits = Limits { time: None, memory: 16 << 20 };
    let reply = run(&mut scripts, &mut FakeHost::default(), "while true do end", limits);
    assert_eq!(killer.join().unwrap(), Ok(()));
    assert!(
        reply.starts_with("-ERR Script killed by user with SCRIPT KILL... script: "),
        "{reply}"
    );
    assert!(reply.ends_with(", on @user_script:1.\r\n"), "{reply}");
    assert_eq!(run(&mut scripts, &mut FakeHost::default(), "return 1", limits), ":1\r\n");
}

#[test]
fn another_thread_cannot_stop_a_script_that_has_written() {
    let mut scripts = Scripts::new("7.0.15");
    let interrupt = scripts.interrupt();
    let killer = thread::spawn(move || {
        loop {
            match interrupt.kill() {
                Err(KillError::NotBusy) => thread::yield_now(),
                other => return other,
            }
        }
    });
    // The first command is the write, so that the other thread cannot be too early.
    let script = "redis.call('set', 'x', 1) for i = 1, 3e7 do end return redis.call('get', 'x')";
    let reply = run(&mut scripts, &mut FakeHost::default(), script, Limits::default());
    match killer.join().unwrap() {
        Err(KillError::Unkillable) => assert_eq!(reply, "$1\r\n1\r\n"),
        // It asked in the microseconds before the write.
        other => assert!(reply.contains("killed"), "{other:?} {reply}"),
    }
}

#[test]
fn a_panic_in_the_host_goes_on_and_the_vm_lives() {
    let (mut scripts, mut host) = (Scripts::new("7.0.15"), FakeHost::default());
    for script in [
        "redis.call('panic')",
        "pcall(redis.call, 'panic') while true do end",
        "redis.pcall('panic')",
    ] {
        let limits = Limits::default();
        let outcome =
            catch_unwind(AssertUnwindSafe(|| run(&mut scripts, &mut host, script, limits)));
        let panic = outcome.expect_err(script);
        assert_eq!(panic.downcast_ref(), Some(&"the host fails on purpose"), "{script}");
        assert_eq!(run(&mut scripts, &mut host, "return redis.call('ping')", limits), "+PONG\r\n");
        assert_eq!(scripts.interrupt().running_for(), None);
    }
}

#[test]
fn scripts_are_found_by_sha_until_they_are_flushed() {
    let (mut scripts, mut host) = (Scripts::new("7.0.15"), FakeHost::default());
    let command = |scripts: &mut Scripts, host: &mut FakeHost, words: &[&str]| {
        let args: Vec<Bytes> =
            words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let mut reply = Reply::new(Protocol::Resp2);
        if words[0].eq_ignore_ascii_case("script") {
            scripts.script_command(&args, Limits::default(), &mut reply);
        } else {
            scripts.eval_command(host, &args, Limits::default(), &mut reply);
        }
        String::from_utf8_lossy(reply.as_bytes()).into_owned()
    };
    let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let missing = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    assert_eq!(command(&mut scripts, &mut host, &["EVALSHA", sha, "0"]), missing);
    assert_eq!(
        command(&mut scripts, &mut host, &["SCRIPT", "LOAD", "return 1"]),
        format!("$40\r\n{sha}\r\n")
    );
    assert_eq!(command(&mut scripts, &mut host, &["evalsha", &sha.to_uppercase(), "0"]), ":1\r\n");
    assert_eq!(
        command(&mut scripts, &mut host, &["script", "exists", sha, "x"]),
        "*2\r\n:1\r\n:0\r\n"
    );
    for n in 0..600 {
        command(&mut scripts, &mut host, &["EVAL", &format!("return {n}"), "0"]);
    }
    assert_eq!(scripts.len(), 501, "the loaded one and the last five hundred");
    assert_eq!(command(&mut scripts, &mut host, &["EVALSHA", sha, "0"]), ":1\r\n");
    assert_eq!(command(&mut scripts, &mut host, &["SCRIPT", "FLUSH", "ASYNC"]), "+OK\r\n");
    assert_eq!(scripts.len(), 0);
    assert_eq!(command(&mut scripts, &mut host, &["EVALSHA", sha, "0"]), missing);
    assert_eq!(
        command(&mut scripts, &mut host, &["EVAL_RO", "return redis.pcall('set','x',1).err", "0"])
            .find("Write commands are not allowed"),
        Some(9)
    );
}

#[test]
fn messages_of_scripts_reach_the_host() {
    let (mut scripts, mut host) = (Scripts::new("7.0.15"), FakeHost::default());
    run(&mut scripts, &mut host, "redis.log(redis.LOG_NOTICE, 'a', 1, {}, 'b')", small());
    assert_eq!(host.logged, [(Level::Notice, "a 1 b".to_owned())]);
}
