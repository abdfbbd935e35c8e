//! `stampede engine export` and `import`: copies the whole keyspace to or from a Redis.
//!
//! For a journal that no engine has open, the command starts an engine behind a socket in a temporary folder.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use stampede_broker::copy::{self, Plan, Report, Step, Target};
use stampede_engine::journal;
use stampede_engine::server::{Config, StartError};
use tokio_util::sync::CancellationToken;

use crate::cli::{Export, FsyncArg, Import};
use crate::local_engine::{self, Running};

/// The remedy when a running server has the journal open.
const RUNNING: &str = "Or copy from or to the running one with its URL: \"stampede serve\" writes it to the file \
                       engine.url beside the journal's folder";

pub(super) async fn export(default_dir: PathBuf, options: Export) -> Result<()> {
    let target = target(options.replace);
    let report = match options.from {
        Some(from) => run(Plan { from, to: options.to.clone(), target }).await?,
        None => {
            let dir = options.dir.unwrap_or(default_dir);
            if !dir.is_dir() {
                bail!("there is no journal in {}. Give its folder with --dir", dir.display());
            }
            let engine = Opened::open(&dir).await?;
            let plan = Plan { from: engine.url()?, to: options.to.clone(), target };
            engine.close_after(run(plan).await).await?
        }
    };
    print(&report);
    println!("To work there: set REDIS_URL to it and start \"stampede serve\"");
    Ok(())
}

pub(super) async fn import(default_dir: PathBuf, options: Import) -> Result<()> {
    let target = target(options.replace);
    let report = match options.to {
        Some(to) => run(Plan { from: options.from, to, target }).await?,
        None => {
            let engine = Opened::open(&options.dir.unwrap_or(default_dir)).await?;
            let plan = Plan { from: options.from, to: engine.url()?, target };
            engine.close_after(run(plan).await).await?
        }
    };
    print(&report);
    Ok(())
}

fn target(replace: bool) -> Target {
    if replace { Target::Replace } else { Target::MustBeEmpty }
}

/// An engine that this command has started on a journal.
struct Opened {
    running: Running,
    folder: tempfile::TempDir,
}

impl Opened {
    async fn open(dir: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stampede-").tempdir()?;
        let config = Config {
            tcp: Vec::new(),
            unix: Some(folder.path().join("engine.sock")),
            dir: Some(dir.to_owned()),
            // Closing the engine syncs everything; until then the copy is incomplete anyway.
            journal: local_engine::journal_config(FsyncArg::Everysec),
            ..Config::default()
        };
        // A failure of the engine fails the copy, too.
        match Running::start(config, CancellationToken::new()).await {
            Ok(running) => Ok(Self { running, folder }),
            Err(error @ StartError::Journal(journal::Error::Locked { .. })) => {
                bail!("{error}. {RUNNING}")
            }
            Err(error) => bail!("{error}"),
        }
    }

    fn url(&self) -> Result<String> {
        local_engine::socket_url(&self.folder.path().join("engine.sock"), None)
    }

    /// Closes the journal before the copy counts.
    async fn close_after(self, result: Result<Report>) -> Result<Report> {
        self.running.stop().await?;
        result
    }
}

/// Copies with a progress bar.
async fn run(plan: Plan) -> Result<Report> {
    let bar = ProgressBar::new(0);
    bar.set_style(ProgressStyle::with_template(
        "{msg:9} {bar:40.cyan/blue} {pos}/{len} keys  {eta} left",
    )?);
    let mut tell = |step: Step| {
        let (what, keys, total) = match step {
            Step::Copied { keys, total } => ("copying", keys, total),
            Step::Compared { keys, total } => ("comparing", keys, total),
            Step::Warning(text) => return bar.suspend(|| eprintln!("Warning: {text}")),
        };
        bar.set_message(what);
        bar.set_length(total);
        bar.set_position(keys);
    };
    let result = tokio::select! {
        result = copy::run(&plan, &mut tell) => result.map_err(anyhow::Error::from),
        _ = tokio::signal::ctrl_c() => Err(anyhow!(
            "interrupted. The target may hold a part and is then marked as unfinished; run it again with --replace"
        )),
    };
    bar.finish_and_clear();
    result
}

fn print(report: &Report) {
    println!(
        "Copied {} keys; both sides were compared and are the same",
        HumanCount(report.keys())
    );
    for database in &report.databases {
        let counts: Vec<String> =
            database.keys.iter().map(|(kind, n)| format!("{} {kind}", HumanCount(*n))).collect();
        let number = if database.from == database.to {
            format!("database {}", database.from)
        } else {
            format!("database {} → {}", database.from, database.to)
        };
        println!("  {number}: {}", counts.join(", "));
    }
    for left_out in &report.left_out {
        println!("  NOT copied: {left_out}");
    }
}
