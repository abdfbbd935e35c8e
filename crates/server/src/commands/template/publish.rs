//! `stampede template publish`: checks a template, sends it to a running server, and assigns it to an event.
//!
//! The name decides which template of the key's user gets the new revision. So a folder can be published
//! again from any machine.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use stampede_model::{Role, TemplateFiles};
use stampede_press::sample;
use stampede_wire::ticketing::templates::Files;

use super::{explained, folder, print, report};
use crate::cli::TemplatePublish;
use crate::commands::client::Client;
use crate::commands::session::Session;
use crate::compiler;
use crate::settings::Settings;

pub(crate) async fn run(settings: Settings, options: TemplatePublish) -> Result<()> {
    let files = folder::read(&options.dir, None)?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => folder_name(&options)?,
    };
    check(&files, &options).await?;
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    let published = tokio::select! {
        published = hand_over(&session, &options, &name, &files) => published,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    session.close().await?;
    let published = published?;
    if options.json {
        println!("{}", published.json());
    } else {
        published.print();
    }
    Ok(())
}

fn folder_name(options: &TemplatePublish) -> Result<String> {
    let path = options.dir.canonicalize()?;
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .context("the folder has no name that could be the template's: give --name")
}

/// Compiles the template here, and prints mistakes with their source lines.
async fn check(files: &TemplateFiles, options: &TemplatePublish) -> Result<()> {
    let event = sample::event();
    let document = sample::document(&event, sample::holder(), sample::price(&event));
    match print(&*compiler::start()?, files, &event, &document).await {
        Ok(made) => {
            report::diagnostics(&made.warnings, files);
            eprintln!("{}: {}", options.dir.display(), made.summary());
            Ok(())
        }
        Err(error) => Err(explained(error, files).context("nothing was published")),
    }
}

/// The result, for the report.
struct Published {
    template: Value,
    /// New, a new revision, or unchanged.
    kind: Kind,
    /// The event that uses it now.
    event: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    New,
    Revision,
    /// The latest revision has the same files.
    Unchanged,
}

async fn hand_over(
    session: &Session,
    options: &TemplatePublish,
    name: &str,
    files: &TemplateFiles,
) -> Result<Published> {
    session.must_be_ready().await?;
    let client = &session.client;
    let before = match &options.id {
        Some(id) => Some(client.get(&format!("/api/templates/{id}")).await?),
        None => named(client, name).await?,
    };
    if let Some(event) = &options.event {
        let found: Result<Value> = client.get(&format!("/api/events/{event}")).await;
        found.context("nothing was published, for there is no such event")?;
    }
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let (count, size) = (files.iter().count(), bytes.div_ceil(1024));
    eprintln!(
        "sending {count} {} ({size} KB) to {}",
        if count == 1 { "file" } else { "files" },
        session.url
    );
    let mut body = json!({ "files": Files::from(files) });
    if let Some(note) = &options.note {
        body["note"] = json!(note);
    }
    let (template, kind) = match before {
        None => {
            body["name"] = json!(name);
            (client.post("/api/templates", &body).await?, Kind::New)
        }
        Some(before) => {
            // With --id the template keeps its name unless --name is given.
            if let Some(name) = &options.name {
                body["name"] = json!(name);
            }
            let path = format!("/api/templates/{}", id_of(&before)?);
            let after = client.put(&path, &body).await?;
            let same = after["revision"] == before["revision"];
            (after, if same { Kind::Unchanged } else { Kind::Revision })
        }
    };
    let event = match &options.event {
        None => None,
        Some(event) => Some(give(client, event, &template, options.pin).await?),
    };
    Ok(Published { template, kind, event })
}

/// The one template of this name.
async fn named(client: &Client, name: &str) -> Result<Option<Value>> {
    let mut found: Vec<Value> = Vec::new();
    let mut after = String::new();
    loop {
        let page: Value = client.get(&format!("/api/templates?limit=1000&after={after}")).await?;
        let templates = page["templates"].as_array().into_iter().flatten();
        found.extend(templates.filter(|template| template["name"] == name).cloned());
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    if found.len() > 1 {
        let ids: Vec<&str> = found.iter().filter_map(|template| template["id"].as_str()).collect();
        bail!(
            "{} templates are called {name:?}: say with --id which one: {}",
            ids.len(),
            ids.join(", ")
        );
    }
    Ok(found.pop())
}

async fn give(client: &Client, event: &str, template: &Value, pin: bool) -> Result<Value> {
    let id = id_of(template)?;
    let choice =
        if pin { json!({ "id": id, "revision": template["revision"] }) } else { json!(id) };
    let changed =
        client.patch(&format!("/api/events/{event}"), &json!({ "template": choice })).await;
    changed.with_context(|| {
        format!(
            "the template is published (id {id}, revision {}), but the event does not use it",
            template["revision"]
        )
    })
}

fn id_of(template: &Value) -> Result<&str> {
    template["id"].as_str().context("the server's answer names no template")
}

impl Published {
    fn json(&self) -> Value {
        let mut shown = self.template.clone();
        shown["unchanged"] = json!(self.kind == Kind::Unchanged);
        shown["event"] = json!(self.event.as_ref().map(|event| &event["id"]));
        shown
    }

    fn print(&self) {
        let (name, revision) = (&self.template["name"], &self.template["revision"]);
        let id = self.template["id"].as_str().unwrap_or_default();
        match self.kind {
            Kind::New => println!("published {name} as a new template: {id}"),
            Kind::Revision => println!("published {name}, revision {revision}: {id}"),
            Kind::Unchanged => println!("{name} is unchanged, still revision {revision}: {id}"),
        }
        match &self.event {
            Some(event) => println!(
                "event {} prints with it; tickets made before are made anew when asked for",
                event["name"]
            ),
            None if self.kind == Kind::New => {
                println!("no event uses it yet; --event EVENT gives it to one");
            }
            None => println!("events that follow it print with this revision from now on"),
        }
    }
}
