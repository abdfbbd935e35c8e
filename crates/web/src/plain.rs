//! Takes comments and indentation out of styles and modules, which are about half of their bytes.
//!
//! This is no parser. It relies on how the files are written, and a test holds them to that: a comment begins on a line
//! of its own and ends with its line, and no text in backticks spans lines.

/// The text without lines that are comments or empty, and without indentation.
pub(crate) fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        let comment = inside || line.starts_with("/*");
        if comment {
            inside = !line.ends_with("*/");
        } else if !line.is_empty() && !line.starts_with("//") {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FILES, Kind};

    #[test]
    fn comments_and_indentation_are_taken_out() {
        let text =
            "// one\n/** two */\nlet a = 1; // stays\n\n/*\n * three\n */\n  let b = '/* text';\n";
        assert_eq!(without_comments(text), "let a = 1; // stays\nlet b = '/* text';\n");
    }

    #[test]
    fn no_file_has_a_comment_or_a_text_that_would_be_cut_wrongly() {
        for file in FILES.iter().filter(|file| matches!(file.kind, Kind::Css | Kind::JavaScript)) {
            let text = std::str::from_utf8(file.bytes).unwrap();
            let mut inside = false;
            for (number, line) in text.lines().map(str::trim).enumerate() {
                let place = format!("{}:{}: {line}", file.path, number + 1);
                if inside || line.starts_with("/*") {
                    assert!(
                        line.find("*/").is_none_or(|at| at + 2 == line.len()),
                        "code after a comment: {place}"
                    );
                    inside = !line.ends_with("*/");
                } else if !line.starts_with("//") {
                    assert_eq!(line.matches('`').count() % 2, 0, "text spans lines: {place}");
                }
            }
            assert!(!inside, "{}: a comment does not end", file.path);
        }
    }
}
