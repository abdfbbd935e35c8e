//! `stampede template`: make, check, preview and watch a template in a folder, without a server, and
//! publish it to a server.

mod folder;
mod publish;
mod report;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use stampede_model::{Diagnostic, Event, TemplateFiles, TicketDocument};
use stampede_press::{Compiler, Error, Picture, Ready, compile_for_author, preflight};

use crate::cli::{LocalTemplate, TemplatePreview, TemplateSource};
use crate::commands::myself;
use crate::compiler;

pub(crate) use self::publish::run as publish;

pub(crate) async fn run(command: LocalTemplate) -> Result<()> {
    match command {
        LocalTemplate::New { dir, design } => begin(&dir, &design),
        LocalTemplate::Check(source) => check(&source).await,
        LocalTemplate::Preview(options) => preview(&options).await,
        LocalTemplate::Watch(options) => watch::run(&options).await,
    }
}

/// Copies a design into a new or empty folder.
fn begin(dir: &Path, design: &str) -> Result<()> {
    let designs = compiler::designs()?;
    let Some(found) = designs.iter().find(|shipped| shipped.name == design) else {
        let names: Vec<&str> = designs.iter().map(|design| design.name.as_str()).collect();
        bail!("no design is called {design:?}; there are {}", names.join(", "));
    };
    folder::write(dir, &found.files)?;
    let shown = dir.display();
    println!("{} is in {shown}. Now:", found.title);
    println!(
        "  {} template watch {shown}     edit {shown}/template.typ and look at {shown}/preview.pdf",
        myself()
    );
    Ok(())
}

async fn check(source: &TemplateSource) -> Result<()> {
    let files = folder::read(&source.dir, None)?;
    let (event, document) = values(source)?;
    let compiler = compiler::start()?;
    let made = print(&*compiler, &files, &event, &document).await;
    match made {
        Ok(made) => {
            report::diagnostics(&made.warnings, &files);
            println!("{}: {}", source.dir.display(), made.summary());
            Ok(())
        }
        Err(error) => Err(explained(error, &files)),
    }
}

async fn preview(options: &TemplatePreview) -> Result<()> {
    let output = Output::of(options)?;
    let files = folder::read(&options.source.dir, Some(&output.path))?;
    let (event, document) = values(&options.source)?;
    let compiler = compiler::start()?;
    let made = make(&*compiler, &files, &event, &document, &output).await;
    match made? {
        Ok(made) => {
            report::diagnostics(&made.warnings, &files);
            println!("{}: {}", output.path.display(), made.summary());
            Ok(())
        }
        Err(error) => Err(explained(error, &files)),
    }
}

/// The file and the format of a preview.
struct Output {
    path: PathBuf,
    picture: Option<Picture>,
}

impl Output {
    fn of(options: &TemplatePreview) -> Result<Self> {
        let path = options.out.clone().unwrap_or_else(|| options.source.dir.join("preview.pdf"));
        let kind = path.extension().and_then(|kind| kind.to_str()).map(str::to_ascii_lowercase);
        let picture = match kind.as_deref() {
            Some("pdf") => None,
            Some("png") => Some(Picture { page: options.page - 1, dpi: options.dpi as f32 }),
            _ => bail!("{} must end in .pdf or .png", path.display()),
        };
        Ok(Self { path, picture })
    }
}

/// The result of a preview.
struct Made {
    warnings: Vec<Diagnostic>,
    slow_because: Option<String>,
    pdf: Vec<u8>,
    took: Duration,
}

impl Made {
    fn summary(&self) -> String {
        let how = match &self.slow_because {
            None => "stamped".to_owned(),
            Some(reason) => format!("typeset ticket by ticket, which is slow ({reason})"),
        };
        let (size, ms) = (self.pdf.len().div_ceil(1024), self.took.as_millis());
        format!("fine, {how}; a PDF of {size} KB, in {ms} ms")
    }
}

/// Makes the preview and writes it. The inner error is a mistake in the template.
async fn make(
    compiler: &dyn Compiler,
    files: &TemplateFiles,
    event: &Event,
    document: &TicketDocument,
    output: &Output,
) -> Result<Result<Made, Error>> {
    let made = match print(compiler, files, event, document).await {
        Ok(made) => made,
        Err(error) => return Ok(Err(error)),
    };
    let picture = match output.picture {
        None => None,
        Some(picture) => match compiler.picture(&made.pdf, picture).await {
            Ok(png) => Some(png),
            Err(error) => return Ok(Err(error)),
        },
    };
    folder::replace(&output.path, picture.as_deref().unwrap_or(&made.pdf))?;
    Ok(Ok(made))
}

/// Compiles the template and makes one ticket with it.
async fn print(
    compiler: &dyn Compiler,
    files: &TemplateFiles,
    event: &Event,
    document: &TicketDocument,
) -> Result<Made, Error> {
    let started = Instant::now();
    let published = compile_for_author(compiler, files, event).await?;
    let ready = Ready::new("preview", &published.blob)?;
    let pdf = ready.pdf(compiler, document).await?;
    let took = started.elapsed();
    let mut warnings = published.warnings;
    for (_, flagged) in preflight(compiler, &ready, std::iter::once(document.clone())) {
        warnings.extend(flagged.into_iter().map(|warning| report::of_ticket(&warning)));
    }
    let slow_because = ready.slow_because().map(str::to_owned);
    Ok(Made { warnings, slow_because, pdf, took })
}

/// Prints the mistakes and a summary.
fn explained(error: Error, files: &TemplateFiles) -> anyhow::Error {
    match error.diagnostics() {
        Some(diagnostics) => {
            report::diagnostics(&diagnostics, files);
            let count = diagnostics.len();
            anyhow::anyhow!("the template does not work ({count} {})", report::mistakes(count))
        }
        None => error.into(),
    }
}

/// The event and the ticket to print.
fn values(source: &TemplateSource) -> Result<(Event, TicketDocument)> {
    let event = json(source.event.as_deref()).context("--event")?;
    let ticket = json(source.ticket.as_deref()).context("--ticket")?;
    stampede_api::preview_values(event, ticket).map_err(anyhow::Error::msg)
}

/// JSON from the argument itself, or from the file it names.
fn json(given: Option<&str>) -> Result<Option<Value>> {
    let Some(given) = given else { return Ok(None) };
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        std::fs::read_to_string(given).with_context(|| format!("cannot read {given}"))?
    };
    Ok(Some(serde_json::from_str(&text).context("is not valid JSON")?))
}
