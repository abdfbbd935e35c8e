//! Handwritten sessions, in a small language.
//!
//! A line is a step of one client: its number, then commands separated by ` ; ` that are sent in one
//! batch. `#2` is the client id that the server assigned to client 2, `"…"` an argument with spaces. A
//! command after `~n` has n replies. `!half` closes the client's writing half after sending, `!close`
//! closes the connection, `!raw` sends bytes (`\r`, `\n`, `\x00`) unchanged.

mod groups;
mod texts;

use std::rc::Rc;

use self::groups::GROUPS;
use self::texts::{PROTECTED, SCENARIOS};
use super::step::{Action, Command, ID_OF, Step};
use super::{Case, Reports};
use crate::redis::Server;

const CLIENTS: usize = 4;

#[test]
fn scenarios_are_answered_as_redis_answers_them() {
    let redis = Server::start();
    check(&redis, SCENARIOS, None);
}

#[test]
fn consumer_groups_are_served_as_redis_serves_them() {
    let redis = Server::start();
    check(&redis, GROUPS, None);
}

#[test]
fn a_server_with_a_password_answers_as_redis_does() {
    let redis = Server::start();
    let set = super::side::words("CONFIG SET requirepass secret");
    crate::redis::Client::connect(redis.port).call_all([set].iter());
    check(&redis, PROTECTED, Some("secret"));
}

#[test]
fn a_pipeline_of_thousands_is_answered_in_order() {
    let redis = Server::start();
    let sent = |count: usize| -> Vec<Rc<Command>> {
        let one = |index: usize| match index % 4 {
            0 => format!("RPUSH list {index}"),
            1 => "LPOP list".to_owned(),
            2 => "INCR counter".to_owned(),
            _ => format!("ECHO {}", "x".repeat(index % 300)),
        };
        (0..count).map(|index| Rc::new(Command::words(&one(index)))).collect()
    };
    let step = |client, action| Step { client, action, while_waiting: false };
    let steps = [
        step(0, Action::Send(sent(20_000))),
        step(1, Action::SendAndHalfClose(sent(5_000))),
        step(2, Action::Send(sent(100))),
    ];
    let known = Reports::new();
    Case { redis: &redis, clients: CLIENTS, password: None, known: &known }.run(&steps).unwrap();
}

/// Runs scenarios one after the other, each from empty and with new clients.
fn check(redis: &Server, scenarios: &[(&str, &str)], password: Option<&str>) {
    let (mut steps, mut begins) = (Vec::new(), Vec::new());
    for (name, text) in scenarios {
        begins.push((steps.len(), *name));
        steps.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(step));
        // Blocked clients disconnect first, or they would be served.
        steps.extend((0..CLIENTS).rev().map(|client| step(&format!("{client} !close"))));
        if password.is_none() {
            steps.push(step("0 FLUSHALL ; SCRIPT FLUSH"));
        }
    }
    let known = Reports::new();
    let case = Case { redis, clients: CLIENTS, password, known: &known };
    if let Err(found) = case.run(&steps) {
        let name = begins.iter().rfind(|(at, _)| *at < found.steps).map_or("", |(_, name)| *name);
        let at = steps.get(found.steps - 1).map(Step::to_string).unwrap_or_default();
        panic!("{name}: differs at\n{at}\n{}", found.what);
    }
}

fn step(line: &str) -> Step {
    let (client, rest) = line.split_once(' ').unwrap_or((line, ""));
    let client = client.parse().unwrap_or_else(|_| panic!("whose line is {line:?}?"));
    let commands = |text: &str| -> Vec<Rc<Command>> {
        text.split(" ; ")
            .filter(|part| !part.is_empty())
            .map(|part| Rc::new(command(part)))
            .collect()
    };
    let action = match rest.split_once(' ').unwrap_or((rest, "")) {
        ("!close", _) => Action::Close,
        ("!half", rest) => Action::SendAndHalfClose(commands(rest)),
        ("!pause", rest) => Action::SendAndPause(commands(rest)),
        _ => Action::Send(commands(rest)),
    };
    Step { client, action, while_waiting: true }
}

fn command(text: &str) -> Command {
    if let Some((replies, text)) = text.strip_prefix('~').and_then(|text| text.split_once(' ')) {
        return command(text).with_replies(replies.parse().unwrap());
    }
    if let Some(raw) = text.strip_prefix("!raw ") {
        return Command { raw: Some(unescaped(raw)), ..Command::default() };
    }
    let (mut args, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (arg, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or_else(|| panic!("no end: {text}")),
            None => rest.split_once(' ').map_or((rest, ""), |(arg, after)| (arg, after)),
        };
        args.push(match arg.strip_prefix('#') {
            Some(client) if client.parse::<usize>().is_ok() => [ID_OF, client.as_bytes()].concat(),
            _ => unescaped(arg),
        });
        rest = after.trim_start();
    }
    Command::new(args)
}

fn unescaped(text: &str) -> Vec<u8> {
    text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0").into_bytes()
}
