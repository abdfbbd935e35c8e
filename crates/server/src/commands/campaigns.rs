//! `stampede campaigns`: campaigns of a running server, through its API.

mod print;
mod watch;

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use stampede_client::{Client, NewContract, RecipientFile, RecipientQuery};
use stampede_model::campaign::{Content, Pacing, Rate, Template};
use stampede_model::{CampaignId, Role};
use stampede_wire::campaigns::{Contract, ImportReport};

use crate::cli::{CampaignCreate, Campaigns, CampaignsCommand};
use crate::commands::session::Session;
use crate::settings::Settings;

pub(crate) async fn run(settings: Settings, options: Campaigns) -> Result<()> {
    // Before the session: a file that cannot be read needs no key.
    let file = match &options.command {
        CampaignsCommand::Create(create) => Some((recipients(create)?, content(create)?)),
        _ => None,
    };
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    // Ctrl-C ends the watching, not the campaign; the temporary key must be revoked.
    let done = tokio::select! {
        done = carry_out(&session.client, &options, file) => done,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted; a campaign that runs goes on")),
    };
    session.close().await?;
    done
}

async fn carry_out(
    client: &Client,
    options: &Campaigns,
    file: Option<(RecipientFile, Option<Content>)>,
) -> Result<()> {
    let json = options.json;
    match &options.command {
        CampaignsCommand::List { state } => {
            let contracts = all(client, state.as_deref()).await?;
            show(json, &contracts, |contracts| print::list(contracts))
        }
        CampaignsCommand::Create(options) => {
            let (file, content) = file.context("a file of recipients")?;
            create(client, json, options, file, content).await
        }
        CampaignsCommand::Show(which) => {
            show(json, &client.contract(which.campaign).await?, print::one)
        }
        CampaignsCommand::Validate(which) => {
            let told = client.validate_contract(which.campaign).await?;
            show(json, &told, print::validation)?;
            if told.ok { Ok(()) } else { bail!("the campaign cannot be started like this") }
        }
        CampaignsCommand::Preview { which, position } => {
            let preview = client.preview_contract(which.campaign, Some(*position)).await?;
            show(json, &preview, print::preview)
        }
        CampaignsCommand::Test { which, addresses, position } => {
            let sent = client.test_contract(which.campaign, addresses, *position).await?;
            show(json, &sent, |sent| print::tested(sent))
        }
        CampaignsCommand::Start { which, at, watch } => {
            let contract = client.start_contract(which.campaign, *at).await?;
            show(json, &contract, print::state)?;
            if *watch { watch::until_it_ends(client, which.campaign).await } else { Ok(()) }
        }
        CampaignsCommand::Pause(which) => {
            show(json, &client.pause_contract(which.campaign).await?, print::paused)
        }
        CampaignsCommand::Resume(which) => {
            show(json, &client.resume_contract(which.campaign).await?, print::state)
        }
        CampaignsCommand::Cancel(which) => {
            show(json, &client.cancel_contract(which.campaign).await?, print::state)
        }
        CampaignsCommand::Watch(which) => watch::until_it_ends(client, which.campaign).await,
        CampaignsCommand::Report { which, csv: Some(csv) } => {
            download(client, which.campaign, csv).await
        }
        CampaignsCommand::Report { which, csv: None } => {
            show(json, &client.contract_report(which.campaign).await?, print::report)
        }
        CampaignsCommand::Recipients { which, state, limit } => {
            list_recipients(client, json, which.campaign, state.as_deref(), *limit).await
        }
        CampaignsCommand::Unknown { which, action: None, .. } => {
            list_recipients(client, json, which.campaign, Some("unknown"), 1_000).await
        }
        CampaignsCommand::Unknown { which, action: Some(action), recipients, all } => {
            if recipients.is_empty() && !all {
                bail!("give --recipient with an id, or --all");
            }
            let ids = (!recipients.is_empty()).then_some(recipients.as_slice());
            let word = action.as_str();
            let settled = client.settle_unknown_recipients(which.campaign, word, ids).await?;
            show(json, &settled, print::settled)?;
            say_state(client, json, which.campaign).await
        }
        CampaignsCommand::RetryFailed { which, recipients } => {
            let ids = (!recipients.is_empty()).then_some(recipients.as_slice());
            let settled = client.retry_failed_recipients(which.campaign, ids).await?;
            show(json, &settled, print::settled)?;
            say_state(client, json, which.campaign).await
        }
        CampaignsCommand::Delete(which) => {
            client.delete_contract(which.campaign).await?;
            println!("{}", if json { "{\"deleted\":true}" } else { "deleted" });
            Ok(())
        }
    }
}

/// Prints the state of a campaign whose recipients were settled: one that was completed is paused now, and wants to be resumed.
async fn say_state(client: &Client, json: bool, campaign: CampaignId) -> Result<()> {
    if !json {
        print::state(&client.contract(campaign).await?);
    }
    Ok(())
}

/// Makes a campaign and adds the recipients of a file. A campaign without a single recipient is deleted again.
async fn create(
    client: &Client,
    json: bool,
    options: &CampaignCreate,
    file: RecipientFile,
    content: Option<Content>,
) -> Result<()> {
    let usual = options.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("campaign");
    let contract = NewContract {
        account_id: Some(options.account.clone()),
        name: options.name.clone().unwrap_or_else(|| usual.to_owned()),
        content,
        pacing: pacing(options.limit, options.per),
        country: options.country.clone(),
        ..NewContract::default()
    };
    let made = client.create_contract(&contract).await?;
    let id = made.contract_id;
    let imported = client.upload_recipients(id, file, false).await;
    if !matches!(&imported, Ok(report) if report.added > 0) {
        client.delete_contract(id).await?;
    }
    let report = imported?;
    if !json {
        print::import(&report);
    }
    must_have_recipients(&report)?;
    if options.start {
        client.start_contract(id, None).await?;
        if !json {
            println!("{id}");
        }
        return watch::until_it_ends(client, id).await;
    }
    if !json {
        print::doubts(&client.validate_contract(id).await?);
    }
    // The last line, so that a script can keep it.
    show(json, &client.contract(id).await?, |contract| println!("{}", contract.id))
}

fn must_have_recipients(report: &ImportReport) -> Result<()> {
    match report.added {
        0 => bail!("the file has no recipient to send to; no campaign was made"),
        _ => Ok(()),
    }
}

/// A limit of its own.
pub(super) fn pacing(limit: Option<u32>, per: Option<Duration>) -> Option<Pacing> {
    let (max, per) = limit.zip(per)?;
    let limit = Rate { max, per_ms: u64::try_from(per.as_millis()).unwrap_or(u64::MAX) };
    Some(Pacing { limit: Some(limit), ..Pacing::default() })
}

/// Reads the recipients, and tells the form of the file by its name.
fn recipients(options: &CampaignCreate) -> Result<RecipientFile> {
    let path = &options.file;
    let bytes = read(path)?;
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let kind = match options.format.as_deref().unwrap_or(&end.to_ascii_lowercase()) {
        "csv" | "tsv" | "txt" => "text/csv",
        "ndjson" | "jsonl" => "application/x-ndjson",
        "json" => "application/json",
        other => {
            bail!("{other:?} is no form of a list of recipients; use --format csv, ndjson or json")
        }
    };
    let kind = match &options.charset {
        Some(charset) => format!("{kind}; charset={charset}"),
        None => kind.to_owned(),
    };
    Ok(RecipientFile { kind, query: vec![("delimiter", options.delimiter.clone())], bytes })
}

/// The bytes of a file; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The message: a text, or what a file says; `None`: the recipients bring their own.
fn content(options: &CampaignCreate) -> Result<Option<Content>> {
    let (text, subject) = (options.text.clone(), options.subject.clone());
    let is_given = text.is_some() || subject.is_some();
    let given = Template { text, subject, ..Template::default() };
    let Some(path) = &options.template else {
        return Ok(is_given.then_some(Content::Template(given)));
    };
    let what = || format!("the template {}", path.display());
    let file = String::from_utf8(read(path)?).with_context(what)?;
    let template = match path.extension().and_then(|end| end.to_str()).unwrap_or_default() {
        "json" if is_given => {
            bail!("a content as JSON has its own text and subject: leave out --text and --subject")
        }
        "json" => return content_of(&file).map(Some).with_context(what),
        "html" | "htm" => Template { html: Some(file), ..given },
        _ if given.text.is_some() => {
            bail!("the message has two texts: --text and {}", path.display())
        }
        _ => Template { text: Some(file), ..given },
    };
    Ok(Some(Content::Template(template)))
}

/// A `content` as JSON; one without a `kind` is a template, as in the API.
fn content_of(json: &str) -> serde_json::Result<Content> {
    let mut content: serde_json::Value = serde_json::from_str(json)?;
    if let Some(fields) = content.as_object_mut() {
        fields.entry("kind").or_insert_with(|| "template".into());
    }
    serde_json::from_value(content)
}

/// All campaigns, newest first.
async fn all(client: &Client, state: Option<&str>) -> Result<Vec<Contract>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = client.contracts(state, after).await?;
        all.extend(page.contracts);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(all),
        }
    }
}

async fn list_recipients(
    client: &Client,
    json: bool,
    campaign: CampaignId,
    state: Option<&str>,
    limit: u32,
) -> Result<()> {
    let state = state.map(str::to_owned);
    let query = RecipientQuery { state, limit: Some(limit), ..RecipientQuery::default() };
    let page = client.recipients(campaign, &query).await?;
    show(json, &page.recipients, |recipients| print::recipients(recipients))
}

/// Writes the rows to a file as they come.
async fn download(client: &Client, campaign: CampaignId, path: &Path) -> Result<()> {
    let unwritable = || format!("cannot write {}", path.display());
    let mut pieces = client.contract_report_csv(campaign).await?;
    let mut file = std::fs::File::create(path).with_context(unwritable)?;
    while let Some(piece) = pieces.next().await? {
        file.write_all(&piece).with_context(unwritable)?;
    }
    println!("The report is in {}", path.display());
    Ok(())
}

pub(super) fn show<T: Serialize>(json: bool, value: &T, print: impl Fn(&T)) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(value)?);
    } else {
        print(value);
    }
    Ok(())
}
