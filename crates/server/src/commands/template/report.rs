//! Mistakes for the terminal: the source line, and a caret below the place.

use std::fmt::Write;

use stampede_model::{Diagnostic, Printable, Severity, TemplateFiles};
use stampede_press::Warning;

/// Most mistakes shown; the first is usually the cause of the others.
const SHOWN: usize = 20;

/// Prints each mistake with its source line and a caret below the place.
pub(super) fn diagnostics(diagnostics: &[Diagnostic], files: &TemplateFiles) {
    for diagnostic in diagnostics.iter().take(SHOWN) {
        eprintln!("{}", drawn(diagnostic, files));
    }
    if diagnostics.len() > SHOWN {
        eprintln!("… and {} more", diagnostics.len() - SHOWN);
    }
}

/// A warning about the sample ticket; it belongs to no line of the template.
pub(super) fn of_ticket(warning: &Warning) -> Diagnostic {
    Diagnostic::warning(warning.message.clone())
}

pub(super) fn mistakes(count: usize) -> &'static str {
    if count == 1 { "mistake" } else { "mistakes" }
}

fn drawn(diagnostic: &Diagnostic, files: &TemplateFiles) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{severity}: {}\n", Printable::line(&diagnostic.message));
    let place = diagnostic.file.as_deref().zip(diagnostic.line);
    if let Some((file, line)) = place {
        let column = diagnostic.column.unwrap_or(1);
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{margin}--> {file}:{line}:{column}");
        if let Some(source) = source_line(files, file, line) {
            // Tabs stay tabs, so that the caret stands below its letter.
            let before: String = source
                .chars()
                .take(column.saturating_sub(1) as usize)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            let _ = writeln!(text, "{margin} |\n{number} | {source}\n{margin} | {before}^");
        }
    }
    for hint in &diagnostic.hints {
        let _ = writeln!(text, "  hint: {}", Printable::line(hint));
    }
    text
}

fn source_line<'a>(files: &'a TemplateFiles, file: &str, line: u32) -> Option<&'a str> {
    let text = std::str::from_utf8(files.get(file)?).ok()?;
    text.lines().nth(line.checked_sub(1)? as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_mistake() {
        let source = "#let a = 1\n\tПривет #nam\n";
        let files = [("template.typ".to_owned(), source.as_bytes().to_vec())];
        let files = TemplateFiles::new(files.into()).unwrap();
        let diagnostic = Diagnostic {
            file: Some("template.typ".into()),
            line: Some(2),
            column: Some(10),
            hints: vec!["is it name?".into()],
            ..Diagnostic::error(None, "unknown variable: nam")
        };
        let expected = "error: unknown variable: nam\n --> template.typ:2:10\n  |\n2 | \tПривет #nam\n  | \t        ^\n  hint: is it name?\n";
        assert_eq!(drawn(&diagnostic, &files), expected);
        let nowhere = Diagnostic { line: Some(99), ..diagnostic };
        assert!(!drawn(&nowhere, &files).contains('^'));
    }
}
