//! `stampede sticker`: one sticker, drawn by a running server.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use stampede_client::{Client, DrawnSticker, NewSticker};
use stampede_model::Role;
use tokio::time::Instant;

use crate::cli::Sticker;
use crate::commands::session::Session;
use crate::settings::Settings;

/// Longest wait for a worker to draw a sticker.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two questions whether it is drawn.
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) async fn run(settings: Settings, options: Sticker) -> Result<()> {
    // Before the session: an order that makes no sense needs no key.
    let order = order(&options)?;
    let session = Session::open(&settings, &options.server, Role::Organiser).await?;
    let drawn = draw(&session.client, &order).await;
    session.close().await?;
    let bytes = drawn?;
    std::fs::write(&options.out, &bytes)
        .with_context(|| format!("cannot write {}", options.out.display()))?;
    println!("{}: {} bytes", options.out.display(), bytes.len());
    Ok(())
}

fn order(options: &Sticker) -> Result<NewSticker> {
    let variant = match options.variant.as_deref() {
        Some(look) if look.trim_start().starts_with('{') => {
            Some(serde_json::from_str(look).context("--variant is no JSON")?)
        }
        name => name.map(|name| Value::String(name.to_owned())),
    };
    Ok(NewSticker {
        text: options.text.replace("\\n", "\n"),
        variant,
        format: Some(format(&options.out)?),
        priority: options.priority.clone(),
    })
}

/// The format that the end of a file's name stands for.
fn format(out: &Path) -> Result<String> {
    let end = out.extension().and_then(|end| end.to_str()).map(str::to_lowercase);
    match end {
        Some(end) if ["webp", "png", "tgs"].contains(&end.as_str()) => Ok(end),
        _ => bail!("{} must end in .webp, .png or .tgs", out.display()),
    }
}

async fn draw(client: &Client, order: &NewSticker) -> Result<Vec<u8>> {
    let sticker = match client.draw_sticker(order).await? {
        DrawnSticker::File(bytes) => return Ok(bytes),
        DrawnSticker::Later(sticker) => sticker,
    };
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if let Some(bytes) = client.sticker_file(&sticker.url).await? {
            return Ok(bytes);
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!(
        "no worker has drawn the sticker within {PATIENCE:?}. Are there workers? See \"stampede queues status\". It will be at {}",
        sticker.url
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_file_says_the_format() {
        assert_eq!(format(Path::new("a/hello.TGS")).unwrap(), "tgs");
        for wrong in ["hello", "hello.gif", ".png"] {
            let told = format(Path::new(wrong)).unwrap_err().to_string();
            assert!(told.contains("must end in .webp, .png or .tgs"), "{told}");
        }
    }
}
