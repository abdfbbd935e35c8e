//! `stampede template watch`: makes the preview again whenever a file is saved.
//!
//! The files are polled a few times a second. Polling works on every disk, shared folders of containers
//! included, where notifications of the system do not; and a template has few files.

use std::time::Duration;

use anyhow::Result;
use tokio_util::sync::CancellationToken;

use super::folder::{self, Traces};
use super::{Output, make, report, values};
use crate::cli::TemplatePreview;
use crate::commands::signals::stop_on_signal;
use crate::compiler;

/// Time between two polls.
const LOOK: Duration = Duration::from_millis(150);

pub(super) async fn run(options: &TemplatePreview) -> Result<()> {
    let output = Output::of(options)?;
    let dir = &options.source.dir;
    // A missing folder or unreadable values end the command: saving a file would not help.
    folder::read(dir, Some(&output.path))?;
    values(&options.source)?;
    let compiler = compiler::start()?;
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    println!("watching {}; Ctrl-C ends it", dir.display());
    let mut seen: Option<Traces> = None;
    while !stop.is_cancelled() {
        // Metadata are taken before the files are read, so a save during reading is noticed at the next poll.
        let traces = folder::traces(dir, Some(&output.path)).ok();
        if traces.is_some() && traces != seen {
            seen = traces;
            tokio::select! {
                () = show(options, &output, &*compiler) => {}
                () = stop.cancelled() => {}
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.cancelled() => {}
        }
    }
    Ok(())
}

/// Makes the preview. Mistakes are printed and do not end the command.
async fn show(options: &TemplatePreview, output: &Output, compiler: &dyn stampede_press::Compiler) {
    let files = match folder::read(&options.source.dir, Some(&output.path)) {
        Ok(files) => files,
        Err(error) => return eprintln!("{error:#}"),
    };
    let made = match values(&options.source) {
        Ok((event, document)) => make(compiler, &files, &event, &document, output).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(Ok(made)) => {
            report::diagnostics(&made.warnings, &files);
            println!("{}: {}", output.path.display(), made.summary());
        }
        Ok(Err(error)) => {
            match error.diagnostics() {
                Some(diagnostics) => report::diagnostics(&diagnostics, &files),
                None => eprintln!("{error}"),
            }
            println!("{}: as it was; waiting for the next save", output.path.display());
        }
        Err(error) => eprintln!("{error:#}"),
    }
}
