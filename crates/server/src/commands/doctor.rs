//! `stampede doctor`: looks at everything a server needs and says what is wrong.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Result, anyhow, bail};
use stampede_store::Durability;

use crate::local_redis::LocalRedis;
use crate::settings::{Redis, Settings};
use crate::{connect, sample};

pub(crate) async fn run(settings: Settings) -> Result<()> {
    let checks = [
        ("Database", database(&settings).await),
        ("Redis", redis(&settings).await),
        ("Files", files(&settings).await),
        ("Ticket", ticket(&settings)),
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

async fn database(settings: &Settings) -> Result<String> {
    if let Some(file) = settings.database_url.strip_prefix("sqlite:")
        && !std::path::Path::new(file).exists()
    {
        return Ok("SQLite; the file is not there yet, the first start will make it".to_owned());
    }
    let store = connect::store(settings, Durability::EveryCommit).await?;
    let drifted = store.drifted_batches().await?;
    store.close().await;
    if !drifted.is_empty() {
        bail!("the counters of {} batches do not match their tickets: {drifted:?}", drifted.len());
    }
    let kind = settings.database_url.split(':').next().unwrap_or_default();
    Ok(format!("{kind} answers, and all batches add up"))
}

async fn redis(settings: &Settings) -> Result<String> {
    let url = match &settings.redis {
        Redis::At(url) => url.clone(),
        Redis::Private => {
            let version = std::process::Command::new("redis-server").arg("--version").output();
            if version.is_err() {
                bail!(
                    "no REDIS_URL is set, and redis-server is not installed: apt-get install redis-server"
                );
            }
            match LocalRedis::known_url(&settings.data_dir) {
                Some(url) if connect::broker(settings, &url).await.is_ok() => url,
                _ => return Ok("none is set; the server will start a private one".to_owned()),
            }
        }
    };
    let broker = connect::broker(settings, &url).await?;
    Ok(format!("{} answers and keeps what it is given (noeviction)", broker.shown_url()))
}

async fn files(settings: &Settings) -> Result<String> {
    connect::files(settings).await?;
    Ok(format!("{} can be written to", settings.public_path.display()))
}

fn ticket(settings: &Settings) -> Result<String> {
    let bytes = sample::try_out(connect::template(settings)?)?;
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
