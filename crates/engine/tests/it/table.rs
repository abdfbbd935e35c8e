//! Compares the command table with `COMMAND INFO` of a real Redis.

use std::collections::BTreeSet;

use stampede_engine::testing::commands;

use crate::redis::{Client, Server};
use crate::rules::{Tree, parse};

/// Containers: Redis has flags and keys on their subcommands, the engine on the container. The last
/// two concern connections or describe the server itself.
const EXCEPT: [&str; 7] = ["object", "memory", "xgroup", "xinfo", "command", "select", "ping"];

/// Commands that Redis 7.0 lacks and 7.2 has.
const NEWER: [&str; 1] = ["waitaof"];
/// Commands that take an option more in 7.2.
const NEWER_ARITY: [&str; 2] = ["zrank", "zrevrank"];

#[test]
fn arity_flags_and_keys_are_those_of_redis() {
    let server = Server::start();
    let mut client = Client::connect(server.port);
    for row in commands().into_iter().filter(|row| !NEWER.contains(&row.name)) {
        let ask = ["COMMAND", "INFO", row.name].map(|arg| arg.as_bytes().to_vec()).to_vec();
        let reply = parse(&client.call_all([&ask].into_iter())[0]);
        let Tree::Array(_, rows) = reply else { panic!("{reply:?}") };
        let Some(Tree::Array(_, theirs)) = rows.first() else { panic!("{} is unknown", row.name) };
        let arity = if NEWER_ARITY.contains(&row.name) { 3 } else { row.arity.into() };
        assert_eq!(theirs[1], Tree::Int(arity), "{}", row.name);
        // Connection commands have other flags in Redis; they are compared in `sessions.rs`.
        if EXCEPT.contains(&row.name) || row.needs_connection {
            continue;
        }
        let keys = row.keys.map(|n| Tree::Int(n.into()));
        assert_eq!(theirs[3..6], keys, "{}", row.name);
        let our_flags: BTreeSet<String> = row.flags.iter().map(|flag| (*flag).to_owned()).collect();
        assert_eq!(their_flags(&theirs[2]), our_flags, "{}", row.name);
    }
}

fn their_flags(tree: &Tree) -> BTreeSet<String> {
    // Flags about clusters, loading and clients, which the engine does not have.
    let ignored = ["movablekeys", "loading", "stale", "no_auth", "allow_busy", "skip_slowlog"];
    let Tree::Array(_, items) = tree else { panic!("{tree:?}") };
    let names = items.iter().map(|item| match item {
        Tree::Line(text) => String::from_utf8_lossy(&text[1..]).into_owned(),
        other => panic!("{other:?}"),
    });
    names.filter(|name| !ignored.contains(&name.as_str())).collect()
}
