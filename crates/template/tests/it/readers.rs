//! The outside programs that read PDFs back. A missing one fails the test with its install line.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The text of a PDF, one printed line per line.
pub(crate) fn text(pdf: &[u8]) -> String {
    let folder = folder_with(pdf);
    run("poppler-utils", "pdftotext", &["-layout", "ticket.pdf", "-"], folder.path())
}

/// The text of a PDF in the order it was drawn and without white space, for texts that were wrapped.
pub(crate) fn unwrapped_text(pdf: &[u8]) -> String {
    let folder = folder_with(pdf);
    let text = run("poppler-utils", "pdftotext", &["-raw", "ticket.pdf", "-"], folder.path());
    text.chars().filter(|c| !c.is_whitespace() && *c != '\u{200b}').collect()
}

/// A line of `pdfinfo`, such as `Pages`.
pub(crate) fn info(pdf: &[u8], key: &str) -> Option<String> {
    let folder = folder_with(pdf);
    let all = run("poppler-utils", "pdfinfo", &["ticket.pdf"], folder.path());
    let mut lines = all.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| *name == key).map(|(_, value)| value.trim().to_owned())
}

/// The names of the fonts inside a PDF.
pub(crate) fn fonts(pdf: &[u8]) -> String {
    let folder = folder_with(pdf);
    run("poppler-utils", "pdffonts", &["ticket.pdf"], folder.path())
}

/// The words of the page with their boxes in points: `(left, top, right, bottom, word)`.
pub(crate) fn boxes(pdf: &[u8]) -> Vec<(f64, f64, f64, f64, String)> {
    let folder = folder_with(pdf);
    let html = run("poppler-utils", "pdftotext", &["-bbox", "ticket.pdf", "-"], folder.path());
    html.lines().filter_map(|line| line.trim().strip_prefix("<word ")).map(word_box).collect()
}

/// A part of a page in points from its top left corner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// From 0.
    pub(crate) page: u32,
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) right: f32,
    pub(crate) bottom: f32,
}

/// What is read in a part of a page, in reading order, as a person would copy it: lines and words are
/// separated by one space, and poppler's direction marks are left out.
pub(crate) fn text_in(pdf: &[u8], part: Part) -> String {
    let folder = folder_with(pdf);
    // Whole numbers only: tenths of a point.
    let tenths = |points: f32| (points * 10.0).round().max(0.0) as u32;
    let (x, y) = (tenths(part.left), tenths(part.top));
    let (w, h) = (tenths(part.right) - x, tenths(part.bottom) - y);
    let page = part.page + 1;
    let options = format!("-r 720 -f {page} -l {page} -x {x} -y {y} -W {w} -H {h} ticket.pdf -");
    let options: Vec<&str> = options.split(' ').collect();
    let text = run("poppler-utils", "pdftotext", &options, folder.path());
    let unmarked: String = text
        .chars()
        .filter(|c| !matches!(c, '\u{202a}'..='\u{202e}' | '\u{200e}' | '\u{200f}'))
        .collect();
    unmarked.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn word_box(line: &str) -> (f64, f64, f64, f64, String) {
    let edge = |name: &str| -> f64 {
        let (_, rest) = line.split_once(&format!("{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let (_, word) = line.split_once('>').unwrap();
    let word = word.trim_end_matches("</word>").to_owned();
    (edge("xMin"), edge("yMin"), edge("xMax"), edge("yMax"), word)
}

fn folder_with(pdf: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ticket.pdf"), pdf).unwrap();
    folder
}

fn run(package: &str, program: &str, arguments: &[&str], folder: &Path) -> String {
    match Command::new(program).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} failed: {errors}");
            String::from_utf8(output.stdout).unwrap()
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("{program} is needed: apt-get install -y {package}")
        }
        Err(error) => panic!("{program} could not be started: {error}"),
    }
}

/// Fails unless qpdf finds the file in order.
pub(crate) fn check(pdf: &[u8]) {
    let folder = folder_with(pdf);
    run("qpdf", "qpdf", &["--check", "ticket.pdf"], folder.path());
}

/// What a scanner reads from the page printed with so many dots per inch.
pub(crate) fn scan_at(pdf: &[u8], dpi: u32) -> String {
    let folder = folder_with(pdf);
    let dpi = dpi.to_string();
    let page = ["-r", &dpi, "-png", "-singlefile", "ticket.pdf", "page"];
    run("poppler-utils", "pdftoppm", &page, folder.path());
    let read = run("zbar-tools", "zbarimg", &["--quiet", "--raw", "page.png"], folder.path());
    read.trim_end().to_owned()
}

/// A page as pixels: red, green and blue of each.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<u8>,
}

/// The first page with so many dots per inch.
pub(crate) fn picture(pdf: &[u8], dpi: u32) -> Picture {
    let folder = folder_with(pdf);
    let dpi = dpi.to_string();
    let page = ["-r", &dpi, "-singlefile", "ticket.pdf", "page"];
    run("poppler-utils", "pdftoppm", &page, folder.path());
    let file = std::fs::read(folder.path().join("page.ppm")).unwrap();
    // `P6`, width and height, 255, then the pixels.
    let lines: Vec<&[u8]> = file.splitn(4, |byte| *byte == b'\n').collect();
    let size: Vec<usize> = std::str::from_utf8(lines[1])
        .unwrap()
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    Picture { width: size[0], height: size[1], pixels: lines[3].to_vec() }
}
