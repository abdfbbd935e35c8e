//! Looking at PDFs as a reader and a scanner do: with poppler and zbar.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::temp_dir;

/// The text of a PDF, as it would be copied from a viewer.
pub fn pdf_text(pdf: &[u8]) -> String {
    let output = run("pdftotext", "poppler-utils", &["-layout", "-", "-"], pdf);
    String::from_utf8_lossy(&output).into_owned()
}

/// How many pages a PDF has.
pub fn pdf_pages(pdf: &[u8]) -> usize {
    let output = run("pdfinfo", "poppler-utils", &["-"], pdf);
    let text = String::from_utf8_lossy(&output).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("Pages:")?.trim().parse().ok())
        .unwrap_or_else(|| panic!("pdfinfo says no page count: {text}"))
}

/// Whether qpdf finds nothing wrong with the structure of a PDF; panics with what it says otherwise.
pub fn pdf_is_sound(pdf: &[u8]) {
    let folder = temp_dir();
    let file = folder.path().join("checked.pdf");
    std::fs::write(&file, pdf).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    run("qpdf", "qpdf", &["--check", &file.display().to_string()], &[]);
}

/// What the QR code of a ticket says, read from an image as coarse as a cheap scanner's.
///
/// Only the lower left quarter of the A4 page is looked at, where the shipped ticket has its code:
/// painting the gradient of a whole page takes several times as long.
pub fn pdf_codes(pdf: &[u8]) -> Vec<String> {
    let folder = temp_dir();
    let image = folder.path().join("page");
    let name = image.display().to_string();
    let quarter = ["-x", "0", "-y", "467", "-W", "330", "-H", "468"];
    let mut arguments = vec!["-r", "80", "-singlefile", "-gray"];
    arguments.extend(quarter);
    arguments.extend(["-", &name]);
    run("pdftoppm", "poppler-utils", &arguments, pdf);
    codes_in(&image.with_extension("pgm"))
}

fn codes_in(image: &Path) -> Vec<String> {
    let name = image.display().to_string();
    let output = run(
        "zbarimg",
        "zbar-tools",
        &["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", &name],
        &[],
    );
    String::from_utf8_lossy(&output).lines().map(str::to_owned).collect()
}

fn run(program: &str, package: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("this test needs {program} ({error}); run: apt-get install {package}")
        });
    let mut stdin = child.stdin.take();
    let input = input.to_vec();
    // Written beside reading: a pipe holds less than a PDF.
    let writer = std::thread::spawn(move || {
        if let Some(stdin) = &mut stdin {
            stdin.write_all(&input).ok();
        }
    });
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{program}: {error}"));
    writer.join().ok();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
