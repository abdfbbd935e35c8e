//! `stampede audit`: the audit log, right from the database, or with `--url` through the API of a running server.

use anyhow::{Result, bail};
use stampede_audit::{Audit as Log, AuditFilter, as_csv};
use stampede_client::AuditQuery;
use stampede_model::{AuditId, Printable, Role};
use stampede_store::{Slice, Sorted, Store};
use stampede_wire::audit::Entry;

use crate::cli::Audit;
use crate::commands::session::Session;
use crate::connect;
use crate::settings::Settings;

/// Entries that are read at a time.
const PAGE: u32 = 1_000;

/// Where the log is.
enum Source {
    Local(Store, Log),
    Remote(Session),
}

pub(crate) async fn run(settings: Settings, options: Audit) -> Result<()> {
    let source = match options.server.url.is_some() {
        true => Source::Remote(Session::open(&settings, &options.server, Role::Admin).await?),
        false => {
            let store =
                connect::existing_store(&settings, "give --url and --key of a server elsewhere")
                    .await?;
            store.migrate().await?;
            Source::Local(store.clone(), Log::new(store))
        }
    };
    let shown = show(&source, &options).await;
    match source {
        Source::Local(store, _) => store.close().await,
        Source::Remote(session) => session.close().await?,
    }
    shown
}

async fn show(source: &Source, options: &Audit) -> Result<()> {
    if let Some(id) = options.entry {
        let entry = match source {
            Source::Local(_, log) => log.entry(id).await?,
            Source::Remote(session) => Some(session.client.audit_entry(id).await?),
        };
        let Some(entry) = entry else { bail!("there is no entry {id}") };
        println!("{}", serde_json::to_string_pretty(&entry)?);
        return Ok(());
    }
    let entries = entries(source, options).await?;
    match (options.csv, options.json) {
        (true, _) => print!("{}", as_csv(&entries)),
        (_, true) => {
            for entry in &entries {
                println!("{}", serde_json::to_string(entry)?);
            }
        }
        _ => entries.iter().for_each(|entry| println!("{}", line(entry))),
    }
    Ok(())
}

/// The newest entries that match, newest first.
async fn entries(source: &Source, options: &Audit) -> Result<Vec<Entry>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let limit = PAGE.min(options.limit - all.len() as u32);
        let page = page(source, options, after, limit).await?;
        let is_full = page.len() as u32 == limit;
        all.extend(page);
        after = all.last().map(|entry| entry.id);
        if !is_full || all.len() as u32 >= options.limit {
            return Ok(all);
        }
    }
}

async fn page(
    source: &Source,
    options: &Audit,
    after: Option<AuditId>,
    limit: u32,
) -> Result<Vec<Entry>> {
    let Audit { user, operation, record, event, from, to, .. } = options;
    let (user, operation, record) = (user.clone(), operation.clone(), record.clone());
    match source {
        Source::Local(_, log) => {
            let filter = AuditFilter { user, operation, record, event: *event };
            let slice = Slice::new(Sorted::NewestFirst, after, limit);
            Ok(log.entries(&filter, &Slice { from: *from, to: *to, ..slice }).await?)
        }
        Source::Remote(session) => {
            let query = AuditQuery {
                user,
                operation,
                record,
                event: event.map(|event| event.to_string()),
                from: from.map(|at| at.to_string()),
                to: to.map(|at| at.to_string()),
            };
            Ok(session.client.audit(&query, after, limit).await?.entries)
        }
    }
}

/// An entry in one line. Names are what people typed, so control characters are escaped.
fn line(entry: &Entry) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let status = entry.status.map(|status| format!(" {status}")).unwrap_or_default();
    let key = match &entry.key_name {
        Some(name) if !name.is_empty() => format!(" ({name})"),
        _ => String::new(),
    };
    Printable::line(format!(
        "{}  {}{status}  {}  {} {}  by {} {}{key}  from {}  {}",
        entry.at,
        entry.outcome.as_str(),
        entry.operation,
        text(&entry.kind),
        text(&entry.record),
        entry.role,
        entry.user,
        entry.address.as_deref().unwrap_or(entry.origin.as_str()),
        entry.id,
    ))
    .to_string()
}
