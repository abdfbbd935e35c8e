//! The `stampede` binary: command line, settings, and the wiring of the other crates.
//!
//! No business logic lives here. `cli.rs` is the command line, `settings/table.rs` the table of settings,
//! `commands/` has one file per command.

// This crate prints for the person at the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod admin_key;
mod cli;
mod commands;
mod compiler;
mod connect;
mod local_engine;
mod logging;
mod sample;
mod settings;
mod ticket_secret;

use std::process::ExitCode;

use crate::cli::{Cli, Command, Example, Template};
use crate::commands::ExitWith;
use crate::settings::{Given, Log, Mistake, Settings};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The sandbox for templates is a child process without settings.
    if std::env::args().nth(1).as_deref() == Some(stampede_template::sandbox::SUBCOMMAND) {
        stampede_template::sandbox_main();
    }
    end_with_the_reader();
    let cli = Cli::read();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("stampede cannot start its threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async { run(cli).await.unwrap_or_else(|code| code) });
    // Work on blocking threads (a page being typeset) must not delay the exit.
    runtime.shutdown_background();
    code
}

/// Ends the process without a panic message when the reader closes the pipe (`stampede … | head`).
fn end_with_the_reader() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>();
        if message.is_some_and(|text| text.starts_with("failed printing to stdout: Broken pipe")) {
            std::process::exit(0);
        }
        others(panic);
    }));
}

async fn run(cli: Cli) -> Result<ExitCode, ExitCode> {
    let given = &cli.settings;
    let result = match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => commands::serve::run(settings(given)?).await,
        Command::Worker => commands::worker::run(settings(given)?).await,
        Command::Demo(options) => commands::demo::run(settings(given)?, options).await,
        Command::Token(command) => commands::token::run(settings(given)?, command).await,
        Command::Verify(options) => commands::verify::run(settings(given)?, options).await,
        Command::TicketKeys(command) => commands::ticket_keys::run(settings(given)?, command).await,
        Command::Queues(options) => commands::queues::run(settings(given)?, options).await,
        Command::Nodes(options) => commands::nodes::run(settings(given)?, options).await,
        Command::Doctor => commands::doctor::run(settings(given)?).await,
        // A machine that only runs the engine need not have the server's settings in order.
        Command::Engine(options) => {
            let log = Log::resolve(given).map_err(|mistakes| refuse(&mistakes))?;
            let default_dir = local_engine::folder(&settings::data_dir(given));
            commands::engine::run(&log, default_dir, options).await
        }
        Command::Template(Template::Publish(options)) => {
            commands::template::publish(settings(given)?, options).await
        }
        Command::Template(Template::Local(command)) => commands::template::run(command).await,
        Command::Settings(options) => {
            commands::settings::run(&options);
            Ok(())
        }
        Command::Example(Example::Orders(options)) => commands::example::orders(options).await,
        Command::Bench(bench) => bench.run().await,
    };
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("stampede: {error:#}");
            let code = error.downcast_ref::<ExitWith>().map(|exit| ExitCode::from(exit.code));
            Err(code.unwrap_or(ExitCode::FAILURE))
        }
    }
}

fn settings(given: &Given) -> Result<Settings, ExitCode> {
    Settings::resolve(given, &|name| std::env::var(name).ok()).map_err(|mistakes| refuse(&mistakes))
}

fn refuse(mistakes: &[Mistake]) -> ExitCode {
    eprintln!("stampede cannot start with these settings:");
    for mistake in mistakes {
        eprintln!("  - {mistake}");
    }
    ExitCode::from(2)
}
