//! The `stampede` binary: command line, settings, and the wiring of the other crates.
//!
//! No business logic lives here. `cli.rs` is the command line, `settings/table.rs` the table of settings,
//! `commands/` has one file per command.

// This crate prints for the person at the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod terminal;

mod admin_key;
mod cli;
mod commands;
mod compiler;
mod connect;
mod local_engine;
mod logging;
mod operator;
mod sample;
mod settings;
mod ticket_secret;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::process::ExitCode;

use stampede_model::Printable;

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
    report_panics();
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

/// Reports a panic in one line, because its message may quote what people typed. Ends the process without a
/// message when the reader closes the pipe (`stampede … | head`).
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        if message.starts_with("failed printing to stdout: Broken pipe") {
            std::process::exit(0);
        }
        eprintln!("{}", panic_line(panic, message));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            eprintln!("{trace}");
        }
    }));
}

fn panic_line(panic: &PanicHookInfo<'_>, message: &str) -> String {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    format!("thread {thread:?} panicked at {place}: {}", Printable::line(message))
}

async fn run(cli: Cli) -> Result<ExitCode, ExitCode> {
    let given = &cli.settings;
    let result = match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => commands::serve::run(settings(given)?).await,
        Command::Worker => commands::worker::run(settings(given)?).await,
        Command::Demo(options) => commands::demo::run(settings(given)?, options).await,
        Command::Order(options) => commands::order::run(settings(given)?, options).await,
        Command::Token(command) => commands::token::run(settings(given)?, command).await,
        Command::Audit(options) => commands::audit::run(settings(given)?, options).await,
        Command::Verify(options) => commands::verify::run(settings(given)?, options).await,
        Command::TicketKeys(command) => commands::ticket_keys::run(settings(given)?, command).await,
        Command::Queues(options) => commands::queues::run(settings(given)?, options).await,
        Command::Webhooks(options) => commands::webhooks::run(settings(given)?, options).await,
        Command::Campaigns(options) => commands::campaigns::run(settings(given)?, options).await,
        Command::Accounts(options) => commands::accounts::run(settings(given)?, options).await,
        Command::Sticker(options) => commands::sticker::run(settings(given)?, options).await,
        Command::Nodes(options) => commands::nodes::run(settings(given)?, options).await,
        Command::Watch(options) => commands::watch::run(&settings(given)?, options).await,
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
        Command::Openapi => {
            println!("{}", stampede_api::openapi());
            Ok(())
        }
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
            eprintln!("stampede: {}", Printable::line(format_args!("{error:#}")));
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
        eprintln!("  - {}", Printable::line(mistake));
    }
    ExitCode::from(2)
}
