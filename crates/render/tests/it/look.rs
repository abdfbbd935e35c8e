//! Looking at PDFs with the tools of readers and scanners.

use std::path::Path;
use std::process::{Command, Output};

use stampede_testkit::temp_dir;

fn run(program: &str, package: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("this test needs {program} ({error}); run: apt-get install {package}")
    })
}

/// Fails if qpdf finds anything wrong.
pub(crate) fn assert_sound(pdf: &[u8], what: &str) {
    let folder = temp_dir();
    let file = write(folder.path(), pdf);
    let output = run("qpdf", "qpdf", &["--check", &file]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("WARNING"), "{what}: {said}");
}

/// What the QR codes of the first page say, at 100 dots per inch.
pub(crate) fn codes(pdf: &[u8]) -> Vec<String> {
    let folder = temp_dir();
    let file = write(folder.path(), pdf);
    let image = folder.path().join("page").display().to_string();
    let output =
        run("pdftoppm", "poppler-utils", &["-r", "100", "-singlefile", "-gray", &file, &image]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let arguments = ["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", &format!("{image}.pgm")];
    let output = run("zbarimg", "zbar-tools", &arguments);
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The first page as gray pixels: width, height, values.
pub(crate) fn pixels(pdf: &[u8], dpi: u32) -> (usize, usize, Vec<u8>) {
    let folder = temp_dir();
    let file = write(folder.path(), pdf);
    let image = folder.path().join("page").display().to_string();
    let dpi = dpi.to_string();
    let output =
        run("pdftoppm", "poppler-utils", &["-r", &dpi, "-singlefile", "-gray", &file, &image]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(format!("{image}.pgm")).expect("pdftoppm writes an image");
    let mut parts = bytes.splitn(4, |byte| byte.is_ascii_whitespace());
    let mut number = || -> Option<usize> { std::str::from_utf8(parts.next()?).ok()?.parse().ok() };
    number();
    let (width, height) = (number().expect("a width"), number().expect("a height"));
    let values = bytes[bytes.len() - width * height..].to_vec();
    (width, height, values)
}

/// A line of what pdfinfo says.
pub(crate) fn info(pdf: &[u8], key: &str) -> Option<String> {
    let folder = temp_dir();
    let file = write(folder.path(), pdf);
    let output = run("pdfinfo", "poppler-utils", &[&file]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| Some(line.strip_prefix(key)?.trim_start_matches(':').trim().to_owned()))
}

/// The document with all streams unpacked, as far as it is text.
pub(crate) fn unpacked(pdf: &[u8]) -> String {
    let folder = temp_dir();
    let file = write(folder.path(), pdf);
    let arguments = ["--qdf", "--object-streams=disable", &file, "-"];
    String::from_utf8_lossy(&run("qpdf", "qpdf", &arguments).stdout).into_owned()
}

fn write(folder: &Path, pdf: &[u8]) -> String {
    let file = folder.join("file.pdf");
    std::fs::write(&file, pdf).expect("the temporary folder can be written to");
    file.display().to_string()
}
