//! Campaigns, recipients and reports as tables.

use stampede_model::campaign::CampaignState;
use stampede_model::{Printable, Timestamp};
use stampede_wire::campaigns::{
    Contract, ContractCounts, ImportReport, PausedContract, Preview, Recipient, Report,
    SettledRecipients, TestMessage, Validation,
};

use crate::commands::table::Table;

/// The usual span of a report.
const MINUTE_MS: u64 = 60_000;
/// Mistakes and problems that are printed; more are only counted.
const PRINTED: usize = 20;

pub(super) fn list(contracts: &[Contract]) {
    let head = ["id", "name", "account", "owner", "state", "done", "recipients", "eta"];
    let mut table = Table::new(head);
    for contract in contracts {
        table.row(vec![
            contract.id.to_string(),
            contract.name.clone(),
            contract.account_id.to_string(),
            contract.owner.clone(),
            contract.status.as_str().to_owned(),
            format!("{} %", contract.progress),
            contract.counts.total.to_string(),
            time(contract.eta_at),
        ]);
    }
    table.print("there are no campaigns");
}

pub(super) fn one(contract: &Contract) {
    let reason = contract.status_reason.as_deref().map(|reason| format!(": {reason}"));
    for (field, value) in [
        ("id", contract.id.to_string()),
        ("name", contract.name.clone()),
        ("account", contract.account_id.to_string()),
        ("owner", contract.owner.clone()),
        ("state", format!("{}{}", contract.status.as_str(), reason.unwrap_or_default())),
        ("event", contract.event_id.map_or_else(none, |id| id.to_string())),
        ("order", contract.batch_id.map_or_else(none, |id| id.to_string())),
        ("recipients", counts(&contract.counts)),
        ("starts", time(contract.start_at)),
        ("ends at the latest", time(contract.end_at)),
        ("eta", time(contract.eta_at)),
        ("created", time(Some(contract.created_at))),
        ("started", time(contract.started_at)),
        ("ended", time(contract.ended_at)),
    ] {
        println!("{field:<21}{}", Printable::line(&value));
    }
}

/// The state alone, after a verb.
pub(super) fn state(contract: &Contract) {
    let when = match (contract.status, contract.start_at, contract.eta_at) {
        (CampaignState::Scheduled, start @ Some(_), _) => format!(", starts {}", time(start)),
        (CampaignState::Running, _, eta @ Some(_)) => format!(", until {}", time(eta)),
        _ => String::new(),
    };
    println!("{}{when}", contract.status.as_str());
}

pub(super) fn paused(paused: &PausedContract) {
    let state = paused.contract.status.as_str();
    println!("{state}; {} messages in flight may still arrive", paused.in_flight);
}

pub(super) fn settled(settled: &SettledRecipients) {
    println!("{} recipients", settled.recipients);
}

/// Counts in a line; states that nobody is in are left out.
pub(super) fn counts(counts: &ContractCounts) -> String {
    let states = [
        ("pending", counts.pending),
        ("queued", counts.queued),
        ("sending", counts.sending),
        ("sent", counts.sent),
        ("delivered", counts.delivered),
        ("read", counts.read),
        ("failed", counts.failed),
        ("unknown", counts.unknown),
        ("skipped", counts.skipped),
    ];
    let told: Vec<String> = states
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

pub(super) fn import(report: &ImportReport) {
    println!(
        "{} rows: {} recipients, {} invalid, {} duplicates, {} suppressed",
        report.rows, report.added, report.invalid, report.duplicates, report.suppressed
    );
    if report.void > 0 {
        println!("{} void tickets are left out", report.void);
    }
    for mistake in report.mistakes.iter().take(PRINTED) {
        let place = mistake.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let field = mistake.field.as_deref().map(|field| format!("{field} ")).unwrap_or_default();
        println!("  {place}{}", Printable::line(format_args!("{field}{}", mistake.message)));
    }
    let more = report.mistakes_total.saturating_sub(report.mistakes.len().min(PRINTED) as u64);
    if more > 0 {
        println!("  … and {more} more");
    }
}

pub(super) fn validation(told: &Validation) {
    println!("{} get a message", told.to_send);
    if told.will_fail > 0 {
        println!("{} will fail, and the others get theirs", told.will_fail);
    }
    for (reason, count) in &told.skipped {
        println!("{count} get none: {}", Printable::line(reason));
    }
    doubts(told);
    if let Some(segments) = &told.segments {
        println!("{} parts, at most {} a message", segments.total, segments.most);
    }
    println!("ends {}", time(told.eta_at));
}

/// Prints the mistakes and warnings of a validation.
pub(super) fn doubts(told: &Validation) {
    for mistake in &told.template_mistakes {
        let place = mistake.line.map(|line| format!(" in line {line}")).unwrap_or_default();
        println!("  {}{place}: {}", mistake.part, Printable::line(&mistake.message));
    }
    for field in &told.empty_fields {
        let name = Printable::line(&field.field);
        println!(
            "  {} have no {name}, such as at position {:?}",
            field.recipients, field.positions
        );
    }
    if let Some(long) = &told.too_long {
        println!(
            "  {} messages are too long: {} of {}, such as at position {:?}",
            long.recipients, long.longest, long.most, long.positions
        );
    }
    for (what, some) in
        [("are empty", &told.empty), ("have no message of their own", &told.no_message)]
    {
        if let Some(some) = some {
            println!("  {} {what}, such as at position {:?}", some.recipients, some.positions);
        }
    }
    for problem in told.problems.iter().take(PRINTED) {
        println!("  {}", Printable::line(problem));
    }
}

pub(super) fn preview(preview: &Preview) {
    println!("to        {}", Printable::line(&preview.address));
    if let Some(subject) = &preview.subject {
        println!("subject   {}", Printable::line(subject));
    }
    println!("length    {} of {}", preview.length, preview.most);
    for field in &preview.empty_fields {
        println!("empty     {}", Printable::line(field));
    }
    for attachment in &preview.attachments {
        println!("attached  {}", Printable::line(attachment));
    }
    if let Some(template) = &preview.whatsapp_template {
        let language = preview.whatsapp_language.as_deref().unwrap_or("-");
        println!("template  {} ({})", Printable::line(template), Printable::line(language));
    }
    for (place, value) in (1..).zip(&preview.whatsapp_values) {
        println!("  {{{{{place}}}}}   {}", Printable::line(value));
    }
    let parts = [("", Some(preview.text.as_str())), ("html:", preview.html.as_deref())];
    for (title, text) in parts {
        let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
        println!();
        if !title.is_empty() {
            println!("{title}");
        }
        for line in text.lines() {
            println!("{}", Printable::line(line));
        }
    }
}

pub(super) fn tested(sent: &[TestMessage]) {
    let mut table = Table::new(["address", "outcome", "code", "detail", "provider id"]);
    for message in sent {
        table.row(vec![
            message.address.clone(),
            message.outcome.clone(),
            word(message.code.as_deref()),
            word(message.detail.as_deref()),
            word(message.provider_id.as_deref()),
        ]);
    }
    table.print("nothing was sent");
}

pub(super) fn recipients(recipients: &[Recipient]) {
    let head = ["position", "id", "address", "state", "attempts", "code", "detail", "updated"];
    let mut table = Table::new(head);
    for recipient in recipients {
        table.row(vec![
            recipient.position.to_string(),
            recipient.id.to_string(),
            recipient.address.clone(),
            recipient.status.as_str().to_owned(),
            recipient.attempts.to_string(),
            word(recipient.code.as_deref()),
            word(recipient.detail.as_deref()),
            time(Some(recipient.updated_at)),
        ]);
    }
    table.print("there are no such recipients");
}

pub(super) fn report(report: &Report) {
    one(&report.contract);
    println!("limit                {} in {} ms", report.limit.max, report.limit.per_ms);
    if !report.codes.is_empty() {
        println!();
        let mut table = Table::new(["state", "code", "recipients", "example"]);
        for code in &report.codes {
            table.row(vec![
                code.status.as_str().to_owned(),
                code.code.clone(),
                code.recipients.to_string(),
                word(code.example.as_deref()),
            ]);
        }
        table.print("");
    }
    if !report.minutes.is_empty() {
        println!();
        let title = if report.step_ms == MINUTE_MS { "minute" } else { "from" };
        let mut table = Table::new([title, "sent", "failed attempts", "unknown"]);
        for minute in &report.minutes {
            let counts = [minute.sent, minute.failed_attempts, minute.unknown];
            let mut row = vec![time(Some(minute.at))];
            row.extend(counts.map(|count| count.to_string()));
            table.row(row);
        }
        table.print("");
    }
    if !report.tests.is_empty() {
        println!();
        let mut table = Table::new(["test message", "to", "outcome", "code"]);
        for test in &report.tests {
            let (to, outcome) = (test.address.clone(), test.outcome.clone());
            table.row(vec![time(Some(test.at)), to, outcome, word(test.code.as_deref())]);
        }
        table.print("");
    }
}

fn word(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

fn none() -> String {
    "-".to_owned()
}

fn time(time: Option<Timestamp>) -> String {
    time.map_or_else(none, |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}
