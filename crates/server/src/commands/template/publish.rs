//! `stampede template publish`: checks a template, sends it to a running server, and assigns it to an event.
//!
//! The name decides which template of the key's user gets the new revision. So a folder can be published
//! again from any machine.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use stampede_client::{AnyTemplate, Client, NewTemplate, TemplateChoice, TemplateUpdate};
use stampede_model::{EventId, Role, TemplateFiles};
use stampede_press::sample;
use stampede_wire::ticketing::events::Event;
use stampede_wire::ticketing::templates::{Files, PublishedTemplate, Template};

use super::{explained, folder, print, report};
use crate::cli::TemplatePublish;
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
        println!("{}", published.json()?);
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

/// The result of publishing.
struct Published {
    template: PublishedTemplate,
    /// The relation to the revision before.
    kind: Kind,
    /// The event that prints with it now.
    event: Option<Event>,
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
    // The id and the revision before; a design that ships has no revision, and the server refuses to change it.
    let before = match &options.id {
        Some(id) => match client.template(id).await? {
            AnyTemplate::Own(template) => Some((id.clone(), Some(template.revision))),
            AnyTemplate::Design(design) => Some((design.id, None)),
        },
        None => {
            named(client, name).await?.map(|found| (found.id.to_string(), Some(found.revision)))
        }
    };
    if let Some(event) = &options.event {
        let found = client.event(event).await;
        found.context("nothing was published, for there is no such event")?;
    }
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let (count, size) = (files.iter().count(), bytes.div_ceil(1024));
    eprintln!(
        "sending {count} {} ({size} KB) to {}",
        if count == 1 { "file" } else { "files" },
        session.url
    );
    let (files, note) = (Files::from(files), options.note.clone());
    let (template, kind) = match before {
        None => {
            let new = NewTemplate { name: name.to_owned(), files, note };
            (client.create_template(&new).await?, Kind::New)
        }
        Some((id, revision)) => {
            // With --id the template keeps its name unless --name is given.
            let update = TemplateUpdate { name: options.name.clone(), files, note };
            let after = client.update_template(&id, &update).await?;
            let same = Some(after.template.revision) == revision;
            (after, if same { Kind::Unchanged } else { Kind::Revision })
        }
    };
    let event = match &options.event {
        None => None,
        Some(event) => Some(give(client, event, &template.template, options.pin).await?),
    };
    Ok(Published { template, kind, event })
}

/// The one template of this name.
async fn named(client: &Client, name: &str) -> Result<Option<Template>> {
    let mut found: Vec<Template> = Vec::new();
    let mut after = None;
    loop {
        let page = client.templates(after).await?;
        found.extend(page.templates.into_iter().filter(|template| template.name == name));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|template| template.id.to_string()).collect();
        bail!(
            "{} templates are called {name:?}: say with --id which one: {}",
            ids.len(),
            ids.join(", ")
        );
    }
    Ok(found.pop())
}

async fn give(client: &Client, event: &str, template: &Template, pin: bool) -> Result<Event> {
    let Template { id, revision, .. } = template;
    let choice = match pin {
        true => TemplateChoice::Pinned { id: *id, revision: *revision },
        false => TemplateChoice::Latest(*id),
    };
    client.give_template(event, &choice).await.with_context(|| {
        format!(
            "the template is published (id {id}, revision {revision}), but the event does not use it"
        )
    })
}

/// The result of publishing, for `--json`.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    template: &'a PublishedTemplate,
    unchanged: bool,
    event: Option<EventId>,
}

impl Published {
    fn json(&self) -> Result<String> {
        let shown = Shown {
            template: &self.template,
            unchanged: self.kind == Kind::Unchanged,
            event: self.event.as_ref().map(|event| event.id),
        };
        Ok(serde_json::to_string(&shown)?)
    }

    fn print(&self) {
        let Template { id, name, revision, .. } = &self.template.template;
        match self.kind {
            Kind::New => println!("published {name:?} as a new template: {id}"),
            Kind::Revision => println!("published {name:?}, revision {revision}: {id}"),
            Kind::Unchanged => println!("{name:?} is unchanged, still revision {revision}: {id}"),
        }
        match &self.event {
            Some(event) => println!(
                "event {:?} prints with it; tickets made before are made anew when asked for",
                event.name
            ),
            None if self.kind == Kind::New => {
                println!("no event uses it yet; --event EVENT gives it to one");
            }
            None => println!("events that follow it print with this revision from now on"),
        }
    }
}
