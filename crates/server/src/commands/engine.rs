//! `stampede engine`: runs the embedded queue server alone; copies, checks and repairs its journal.

mod copy;
mod journal;
mod run;

use std::path::PathBuf;

use anyhow::Result;

use crate::cli::{Engine, EngineCommand};
use crate::settings::Log;

/// Runs the command; without one, the engine itself.
pub(crate) async fn run(log: &Log, default_dir: PathBuf, options: Engine) -> Result<()> {
    match options.command.unwrap_or(EngineCommand::Run(options.run)) {
        EngineCommand::Run(options) => run::run(log, default_dir, options).await,
        EngineCommand::Export(options) => copy::export(default_dir, options).await,
        EngineCommand::Import(options) => copy::import(default_dir, options).await,
        EngineCommand::Check(options) => journal::check(&options.dir.unwrap_or(default_dir)),
        EngineCommand::Repair(options) => journal::repair(default_dir, options),
    }
}
