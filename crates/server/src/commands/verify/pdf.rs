//! Reads the QR codes of a PDF: poppler renders the pages, zbar finds the codes.
//!
//! Both are separate programs, so a hostile file cannot harm this process; they are killed when they take
//! too long. They read the file from a pipe, so its name is never an argument.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use stampede_model::Token;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Most pages that are read.
const PAGES: &str = "50";
/// Resolution in dots per inch; it suffices for a code of 16 mm.
const DPI: &str = "200";
/// Largest file in bytes; our own are smaller.
const MAX_BYTES: u64 = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// The ticket tokens among the QR codes, in the order of the pages.
pub(super) async fn codes(path: &Path) -> Result<Vec<String>> {
    let shown = path.display();
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.len();
    if size > MAX_BYTES {
        bail!("{shown} has {size} bytes: too many for tickets");
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    if !bytes.starts_with(b"%PDF-") {
        bail!("{shown} is not a PDF. Give a PDF, or the text of a QR code");
    }
    let folder = tempfile::Builder::new().prefix("stampede-verify-").tempdir()?;
    let painted =
        run("pdftoppm", folder.path(), &["-r", DPI, "-gray", "-l", PAGES, "-", "page"], &bytes);
    let painted = painted.await?;
    if !painted.status.success() {
        let reason = String::from_utf8_lossy(&painted.stderr);
        bail!("{shown} cannot be read: {}", reason.lines().next().unwrap_or("pdftoppm failed"));
    }
    let mut pages: Vec<String> = std::fs::read_dir(folder.path())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    pages.sort();
    let mut arguments = vec!["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"];
    arguments.extend(pages.iter().map(String::as_str));
    let scanned = run("zbarimg", folder.path(), &arguments, &[]).await?;
    let found: Vec<String> =
        String::from_utf8_lossy(&scanned.stdout).lines().map(str::to_owned).collect();
    // A template may have other codes beside the ticket's token, such as a link.
    let tokens: Vec<String> =
        found.iter().filter(|text| text.parse::<Token>().is_ok()).cloned().collect();
    match (tokens.is_empty(), found.len()) {
        (false, _) => Ok(tokens),
        (true, 0) => bail!("no QR code can be read on the pages of {shown}"),
        (true, codes) => {
            bail!("{shown} is not a genuine ticket: none of its {codes} QR codes is a ticket token")
        }
    }
}

async fn run(program: &str, folder: &Path, arguments: &[&str], input: &[u8]) -> Result<Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| {
            format!(
                "{program} does not start; reading QR codes from a PDF needs it: \
                 apt-get install poppler-utils zbar-tools. Or scan the code and give its text"
            )
        })?;
    let stdin = child.stdin.take();
    let work = async {
        let (output, ()) = tokio::join!(child.wait_with_output(), async {
            if let Some(mut stdin) = stdin {
                // A program that stops reading early prints the reason.
                stdin.write_all(input).await.ok();
            }
        });
        output
    };
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(output) => Ok(output?),
        Err(_) => bail!("{program} took longer than {PATIENCE:?} and was ended"),
    }
}
