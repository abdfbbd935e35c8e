//! The `stampede` binary: command line, settings, and the wiring of the other crates.
//!
//! No business logic lives here. `cli.rs` is what a person types, `settings.rs` what it means,
//! `commands/` has one file per command.

// Talking to the person at the terminal is what this crate is for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod connect;
mod keys;
mod local_redis;
mod logging;
mod sample;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Bench, Cli, Command};
use crate::settings::Settings;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let settings = match Settings::resolve(&cli.settings, &|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(mistakes) => {
            eprintln!("stampede cannot start with these settings:");
            for mistake in &mistakes {
                eprintln!("  - {mistake}");
            }
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("stampede cannot start its threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        match cli.command.unwrap_or(Command::Serve) {
            Command::Serve => commands::serve::run(settings).await,
            Command::Worker => commands::worker::run(settings).await,
            Command::Demo(options) => commands::demo::run(settings, options).await,
            Command::Token(command) => commands::token::run(settings, command).await,
            Command::Doctor => commands::doctor::run(settings).await,
            Command::Bench(Bench::Tickets(options)) => commands::bench::run(options).await,
        }
    });
    // What is left on blocking threads (a page being typeset) must not hold up the exit.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stampede: {error:#}");
            ExitCode::FAILURE
        }
    }
}
