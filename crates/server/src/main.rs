//! The `stampede` binary: command line, settings, and the wiring of the other crates.
//!
//! No business logic lives here. `cli.rs` is what a person types, `settings.rs` what it means,
//! `commands/` has one file per command.

// Talking to the person at the terminal is what this crate is for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod compiler;
mod connect;
mod keys;
mod local_engine;
mod logging;
mod sample;
mod settings;
mod ticket_secret;

use std::process::ExitCode;

use crate::cli::{Bench, Cli, Command, Example, SettingArgs, Template};
use crate::settings::{Log, Mistake, Settings};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A child that runs people's templates: it sees no settings and needs none.
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
    // What is left on blocking threads (a page being typeset) must not hold up the exit.
    runtime.shutdown_background();
    code
}

/// Whoever has read enough closes the pipe (`stampede … | head`): that is an end, not a panic.
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
    let args = &cli.settings;
    let result = match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => commands::serve::run(settings(args)?).await,
        Command::Worker => commands::worker::run(settings(args)?).await,
        Command::Demo(options) => commands::demo::run(settings(args)?, options).await,
        Command::Token(command) => commands::token::run(settings(args)?, command).await,
        Command::Verify(options) => commands::verify::run(settings(args)?, options).await,
        Command::TicketKeys(command) => commands::ticket_keys::run(settings(args)?, command).await,
        Command::Queues(options) => commands::queues::run(settings(args)?, options).await,
        Command::Nodes(options) => commands::nodes::run(settings(args)?, options).await,
        Command::Doctor => commands::doctor::run(settings(args)?).await,
        // A machine that only runs the engine need not have the server's settings in order.
        Command::Engine(options) => {
            let log = Log::resolve(args).map_err(|mistakes| refuse(&mistakes))?;
            let default_dir = local_engine::folder(&settings::data_dir(args));
            commands::engine::run(&log, default_dir, options).await
        }
        Command::Template(Template::Publish(options)) => {
            commands::template::publish(settings(args)?, options).await
        }
        Command::Template(Template::Local(command)) => commands::template::run(command).await,
        Command::Bench(Bench::Tickets(options)) => commands::bench::run(options).await,
        Command::Bench(Bench::Idle(options)) => commands::bench::idle::run(options).await,
        Command::Example(Example::Orders(options)) => commands::example::orders(options).await,
        Command::Bench(Bench::Queue(options)) => commands::bench::queue::run(options).await,
        Command::Bench(Bench::Render(options)) => commands::bench::render::run(options).await,
        Command::Bench(Bench::Engine(options)) => commands::bench::engine::run(options).await,
    };
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("stampede: {error:#}");
            Err(ExitCode::FAILURE)
        }
    }
}

fn settings(args: &SettingArgs) -> Result<Settings, ExitCode> {
    Settings::resolve(args, &|name| std::env::var(name).ok()).map_err(|mistakes| refuse(&mistakes))
}

fn refuse(mistakes: &[Mistake]) -> ExitCode {
    eprintln!("stampede cannot start with these settings:");
    for mistake in mistakes {
        eprintln!("  - {mistake}");
    }
    ExitCode::from(2)
}
