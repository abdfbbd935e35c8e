//! Reading the QR codes of a PDF as a scanner does: the pages are painted by poppler and looked at by zbar.
//!
//! Both are programs of their own: a hostile file meets them, not us, and they are ended when they take
//! too long. The file reaches them through a pipe, so its name is never an argument.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use stampede_model::Token;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Pages that are looked at.
const PAGES: &str = "50";
/// Fine enough for a code of 16 mm.
const DPI: &str = "200";
/// Larger files are not ours.
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
    // A template may have other codes beside the ticket's, such as a link.
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
                // One that does not read all of it has a reason, which it tells.
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
