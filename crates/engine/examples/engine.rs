//! A minimal program that embeds the engine: `cargo run --example engine -- 6390 [directory]`.

#![allow(clippy::print_stdout)]

use stampede_engine::{Config, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().unwrap_or_default().parse()?;
    let dir = args.next().map(Into::into);
    let server = Server::start(Config {
        tcp: vec![([127, 0, 0, 1], port).into()],
        dir,
        ..Config::default()
    })?;
    println!(
        "listening on {:?}, journal {:?}, {:?}",
        server.tcp_addr(),
        server.opened(),
        server.replay_time()
    );
    std::io::stdin().read_line(&mut String::new())?;
    server.stop()?;
    Ok(())
}
