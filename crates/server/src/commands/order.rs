//! `stampede order`: a file of guests is ordered from a running server, and watched until the PDFs are there.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use stampede_client::{Client, GuestFile};
use stampede_model::{BatchId, Printable, Role};
use stampede_wire::problem::FieldError;
use stampede_wire::ticketing::orders::TicketWarnings;
use stampede_wire::ticketing::uploads::UploadDryRun;

use crate::cli::OrderFile;
use crate::commands::progress::watch;
use crate::commands::session::Session;
use crate::settings::Settings;

/// Mistakes and warnings that are printed; more are only counted.
const PRINTED: usize = 20;

pub(crate) async fn run(settings: Settings, options: OrderFile) -> Result<()> {
    let file = guest_file(&options)?;
    // Of any event: who may read the database of this machine may order.
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    // Ctrl-C ends the watching, not the order; the temporary key must be revoked.
    let result = tokio::select! {
        result = order(&options, file, &session) => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted; what was ordered goes on")),
    };
    session.close().await?;
    result
}

async fn order(options: &OrderFile, file: GuestFile, session: &Session) -> Result<()> {
    session.must_be_ready().await?;
    let client = &session.client;
    if options.dry_run {
        let told = client.try_guests(&options.event, file).await.map_err(explained)?;
        return print_dry_run(&told);
    }
    let started = Instant::now();
    let accepted = client.upload_guests(&options.event, file).await.map_err(explained)?;
    println!(
        "Ordered {} tickets in {:.1?}: batch {}",
        accepted.total,
        started.elapsed(),
        accepted.batch_id
    );
    print_warnings(&accepted.warnings);
    let batch = watch(client, accepted.batch_id, accepted.total).await?;
    let (completed, failed) = (batch.counters.completed, batch.counters.failed);
    println!("{completed} ready, {failed} failed in {:.1?}", started.elapsed());
    if let Some(zip) = &options.zip {
        download(client, accepted.batch_id, zip).await?;
        println!("The tickets are in {}", zip.display());
    }
    if failed > 0 {
        bail!(
            "{failed} tickets failed; GET /api/tickets?batch={}&status=failed says why",
            accepted.batch_id
        );
    }
    Ok(())
}

/// Reads the file, and tells its form by its name.
fn guest_file(options: &OrderFile) -> Result<GuestFile> {
    let path = &options.file;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let kind = match options.format.as_deref().unwrap_or(&end.to_ascii_lowercase()) {
        "csv" | "tsv" | "txt" => "text/csv",
        "ndjson" | "jsonl" => "application/x-ndjson",
        "json" => "application/json",
        other => bail!("{other:?} is no form of a guest list; use --format csv, ndjson or json"),
    };
    let kind = match &options.charset {
        Some(charset) => format!("{kind}; charset={charset}"),
        None => kind.to_owned(),
    };
    let flag = |set: bool| set.then(|| "1".to_owned());
    let query = vec![
        ("delimiter", options.delimiter.clone()),
        ("seat", options.seat.clone()),
        ("price", options.price.clone()),
        ("strict", flag(options.strict)),
    ];
    Ok(GuestFile { kind, query, idempotency_key: options.idempotency_key.clone(), bytes })
}

/// A refusal with all of its mistakes, a line each.
fn explained(error: stampede_client::Error) -> anyhow::Error {
    let Some(problem) =
        error.problem().filter(|problem| problem.errors.iter().any(|e| e.line.is_some()))
    else {
        return error.into();
    };
    let count = problem.more.get("errorCount").and_then(|count| count.as_u64()).unwrap_or_default();
    print_mistakes(&problem.errors, count);
    anyhow!("nothing was ordered: the file has {count} mistakes")
}

fn print_mistakes(errors: &[FieldError], count: u64) {
    for error in errors.iter().take(PRINTED) {
        let place = error.line.map_or(String::new(), |line| format!("line {line}: "));
        println!("  {place}{}", Printable::line(format_args!("{} {}", error.field, error.message)));
    }
    let more = count.saturating_sub(errors.len().min(PRINTED) as u64);
    if more > 0 {
        println!("  … and {more} more");
    }
}

fn print_warnings(warnings: &TicketWarnings) {
    for warning in warnings.warnings.iter().take(PRINTED) {
        let place = warning.line.map_or(String::new(), |line| format!("line {line}: "));
        println!("  warning: {place}{}", Printable::line(&warning.message));
    }
    let more = warnings.warnings.len().saturating_sub(PRINTED);
    if more > 0 {
        println!("  … and {more} more warnings");
    }
}

fn print_dry_run(told: &UploadDryRun) -> Result<()> {
    let delimiter = told.delimiter.as_deref().map(|it| format!(", {it}")).unwrap_or_default();
    println!("Read as {:?}, {}{delimiter}", told.format, told.encoding);
    for column in &told.columns {
        let field = column.field.as_deref().unwrap_or("(ignored)");
        println!("  column {:<20} → {field}", Printable::line(&column.name).to_string());
    }
    for row in &told.rows {
        let rest = [&row.email, &row.seat, &row.price].map(|cell| cell.as_deref().unwrap_or("–"));
        let cells = format!("{} | {}", row.name, rest.join(" | "));
        println!("  line {}: {}", row.line, Printable::line(&cells));
    }
    print_warnings(&told.warnings);
    print_mistakes(&told.errors, told.error_count);
    let price = told.total_price.as_deref().map(|price| format!(", {price} {}", told.currency));
    println!("{} tickets{}", told.total, price.unwrap_or_default());
    match told.accepted {
        true => Ok(()),
        false => bail!("the file would be refused"),
    }
}

/// Downloads the ZIP, written to the file as it comes.
async fn download(client: &Client, batch: BatchId, zip: &Path) -> Result<()> {
    use std::io::Write;
    let unwritable = || format!("cannot write {}", zip.display());
    let mut file = std::fs::File::create(zip).with_context(unwritable)?;
    let bar = indicatif::ProgressBar::new_spinner();
    if std::io::stderr().is_terminal() {
        bar.set_message("downloading");
    }
    let mut pieces = client.batch_zip(batch).await?;
    while let Some(piece) = pieces.next().await? {
        file.write_all(&piece).with_context(unwritable)?;
        bar.inc(piece.len() as u64);
    }
    bar.finish_and_clear();
    Ok(())
}
