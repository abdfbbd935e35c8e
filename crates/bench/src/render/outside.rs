//! Programs of others: wkhtmltopdf, called as the Node system before Stampede did, and two Python libraries.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use stampede_template::EventData;

use super::{Cost, process_cpu};

/// The page of that Node system; `{name}` and the other fields are replaced.
const PAGE: &str = include_str!("page.html");
const WEASYPRINT: &str = include_str!("weasyprint_tickets.py");
const REPORTLAB: &str = include_str!("reportlab_tickets.py");

/// A ticket as HTML.
pub(super) fn html(index: u32) -> String {
    let event = EventData::sample();
    let side = 41;
    // A pattern as dense as a QR code: its content does not change the work.
    let path: String = (0..side * side)
        .filter(|module| (module * 7919 + index * 31) % 97 < 48)
        .map(|module| format!("M{} {}h1v1h-1z", module % side, module / side))
        .collect();
    PAGE.replace("{event}", &event.name)
        .replace("{location}", &event.location)
        .replace("{name}", &format!("Amelia Hartmann {index}"))
        .replace("{seat}", &format!("Row C, Seat {index}"))
        .replace("{price}", "48.00")
        .replace("{code}", &path)
}

/// wkhtmltopdf, started anew for every ticket.
pub(super) struct Wkhtmltopdf {
    folder: tempfile::TempDir,
}

impl Wkhtmltopdf {
    pub(super) fn find() -> Result<Self> {
        let found = Command::new("wkhtmltopdf").arg("--version").output();
        found.context("apt-get install wkhtmltopdf")?;
        Ok(Self { folder: tempfile::tempdir()? })
    }

    pub(super) fn measure(&mut self, count: u32) -> Result<Cost> {
        let (html_path, pdf_path) = (self.path("ticket.html"), self.path("ticket.pdf"));
        let (_, before) = process_cpu()?;
        let mut bytes = 0.0;
        for index in 0..count {
            std::fs::write(&html_path, html(index))?;
            let status = Command::new("wkhtmltopdf")
                .args([
                    "--enable-local-file-access",
                    "--print-media-type",
                    "--no-stop-slow-scripts",
                ])
                .args(["--javascript-delay", "100", "--margin-top", "0", "--margin-bottom", "0"])
                .args(["--margin-left", "0", "--margin-right", "0", "--page-size", "A4"])
                .args(["--dpi", "300", "--image-quality", "100"])
                .args([&html_path, &pdf_path])
                .env("QT_QPA_PLATFORM", "offscreen")
                .env("XDG_RUNTIME_DIR", self.folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            if !status.success() {
                bail!("wkhtmltopdf ended with {status}");
            }
            bytes += size(&pdf_path)?;
        }
        let (_, after) = process_cpu()?;
        Ok(Cost { seconds: (after - before) / f64::from(count), bytes: bytes / f64::from(count) })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A Python library; the script warms up, then measures its own CPU time.
pub(super) struct Python {
    script: &'static str,
    folder: tempfile::TempDir,
}

impl Python {
    pub(super) fn find(module: &'static str) -> Result<Self> {
        let import = format!("import {module}");
        let found = Command::new("python3").args(["-c", &import]).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            bail!("pip install {module}");
        }
        let script = if module == "weasyprint" { WEASYPRINT } else { REPORTLAB };
        Ok(Self { script, folder: tempfile::tempdir()? })
    }

    pub(super) fn measure(&mut self, count: u32) -> Result<Cost> {
        let page = self.folder.path().join("ticket.html");
        std::fs::write(&page, html(1))?;
        let output = Command::new("python3")
            .args(["-c", self.script, &count.to_string()])
            .arg(&page)
            .stderr(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let figures: Vec<f64> = text.split_whitespace().filter_map(|t| t.parse().ok()).collect();
        let [seconds, bytes] = figures[..] else { bail!("the script answered {text:?}") };
        Ok(Cost { seconds, bytes })
    }
}

fn size(path: &Path) -> Result<f64> {
    Ok(std::fs::metadata(path)?.len() as f64)
}
