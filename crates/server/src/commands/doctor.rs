//! `stampede doctor`: checks everything a server needs and prints what is wrong.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Result, anyhow, bail};
use stampede_store::{Error, Schema, Store};

use crate::local_engine::{self, LocalEngine};
use crate::settings::{Redis, Settings};
use crate::{compiler, connect, sample, ticket_secret};

pub(crate) async fn run(settings: Settings) -> Result<()> {
    let checks = [
        ("Database", database(&settings).await),
        ("Keys", ticket_keys(&settings).await),
        ("Redis", redis(&settings).await),
        ("Files", files(&settings).await),
        ("Ticket", ticket(&settings).await),
        ("Port", port(&settings)),
    ];
    let mut problems = 0;
    for (name, result) in checks {
        match result {
            Ok(text) => println!("  ok    {name:<9} {text}"),
            Err(error) => {
                problems += 1;
                println!("  WRONG {name:<9} {error:#}");
            }
        }
    }
    match problems {
        0 => Ok(()),
        1 => bail!("one thing is wrong"),
        _ => bail!("{problems} things are wrong"),
    }
}

/// Whether the database exists. The doctor must not make one.
fn has_database(settings: &Settings) -> bool {
    let file = settings.database_url.strip_prefix("sqlite:");
    file.is_none_or(|file| std::path::Path::new(file.strip_prefix("//").unwrap_or(file)).exists())
}

async fn database(settings: &Settings) -> Result<String> {
    if !has_database(settings) {
        return Ok("SQLite; the first start will make the file".to_owned());
    }
    let store = connect::store(settings).await?;
    let checked = records(&store).await;
    store.close().await;
    let kind = settings.database_url.split(':').next().unwrap_or_default();
    Ok(format!("{kind} answers and accepts writes, and {}", checked?))
}

/// Checks the records; says what is right about them.
async fn records(store: &Store) -> Result<&'static str> {
    store.ping().await?;
    match store.schema().await? {
        Schema::Current => {}
        Schema::Empty => return Ok("the first start will make its tables"),
        Schema::Older(missing) => bail!(
            "the database is of an older version, so its records cannot be checked; migrations that it lacks: \
             {missing}. Back it up, then start this version once, which brings it up to date; or use the doctor \
             of the version that made it"
        ),
        Schema::Newer(migration) => bail!(
            "the database is of a newer version: it has migration {migration}, which this one does not know. \
             Use the version that made it"
        ),
    }
    let drifted = store.drifted_batches().await?;
    if !drifted.is_empty() {
        bail!("the counters of {} batches do not match their tickets: {drifted:?}", drifted.len());
    }
    let wrong = store.wrong_campaign_counts().await?;
    if !wrong.is_empty() {
        let ids: Vec<String> = wrong.iter().map(|(id, _)| id.to_string()).collect();
        bail!("the counts of {} campaigns do not match their recipients: {ids:?}", ids.len());
    }
    Ok("the counters of all batches and campaigns are right")
}

async fn ticket_keys(settings: &Settings) -> Result<String> {
    if !has_database(settings) {
        return Ok("no ticket keys yet".to_owned());
    }
    ticket_secret::must_be_shared(settings)?;
    let store = connect::store(settings).await?;
    let known = ticket_secret::known(settings)?.is_some();
    let checked = match store.has_ticket_secret().await {
        // No such table: the database is of a version without ticket keys.
        Ok(false) | Err(Error::Refused(_)) => Ok("no ticket keys yet; the next start makes them"),
        Ok(true) if known => store
            .check_ticket_secret()
            .await
            .map(|()| "TICKET_KEY_SECRET, or its file, decrypts the ticket keys")
            .map_err(Into::into),
        Ok(true) => Err(anyhow!(
            "the ticket keys are encrypted, but TICKET_KEY_SECRET is not set and DATA_DIR/ticket-master.key does not exist"
        )),
        Err(error) => Err(error.into()),
    };
    store.close().await;
    checked.map(str::to_owned)
}

async fn redis(settings: &Settings) -> Result<String> {
    let url = match &settings.redis {
        Redis::At(url) => url.clone(),
        Redis::Embedded => match LocalEngine::known_url(&settings.data_dir) {
            Some(url) if connect::broker(settings, &url).await.is_ok() => {
                return Ok("the embedded engine is running and answers".to_owned());
            }
            _ => return journal(settings),
        },
    };
    let broker = connect::broker(settings, &url).await?;
    Ok(format!("{} answers and never evicts jobs (noeviction)", broker.shown_url()))
}

/// Checks the journal of an embedded engine that is not running.
fn journal(settings: &Settings) -> Result<String> {
    local_engine::check_address(&settings.data_dir, &settings.engine)?;
    let folder = local_engine::folder(&settings.data_dir);
    if !folder.exists() {
        return Ok("REDIS_URL is not set; the server will run the embedded engine".to_owned());
    }
    let contents = stampede_engine::check_journal(&folder)?;
    if let Some(damage) = contents.damage {
        bail!("{damage}");
    }
    Ok("REDIS_URL is not set; the server will run the embedded engine, whose journal is undamaged"
        .to_owned())
}

async fn files(settings: &Settings) -> Result<String> {
    connect::files(settings).await?.probe().await?;
    Ok(format!("{} can be written to", settings.public_path.display()))
}

async fn ticket(settings: &Settings) -> Result<String> {
    let files = connect::default_template(settings)?;
    let bytes = sample::try_out(&*compiler::start()?, &files).await?;
    Ok(format!("the template makes a PDF of {} KB", bytes.len().div_ceil(1024)))
}

fn port(settings: &Settings) -> Result<String> {
    let address = SocketAddr::new(settings.host, settings.port);
    match TcpListener::bind(address) {
        Ok(_) => Ok(format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Ok(format!("{address} is in use: by a running server, if you started one"))
        }
        Err(error) => Err(anyhow!("{address} cannot be used: {error}. Check HOST and PORT")),
    }
}
