//! The table of settings for people: `docs/settings.md`, and `stampede settings` in a terminal.

use super::row::Setting;
use super::table::{PLANNED, groups};

const OPENING: &str = "\
# Settings

<!-- Written by a program from crates/server/src/settings/table.rs; do not edit. To write it again:
     cargo run -p stampede -- settings --markdown > docs/settings.md -->

Settings are environment variables. Those with a flag can be given on the command line too, and the flag wins.
An empty variable counts as not set. Wrong values stop the start: all of them are named at once, each with what would be right.
`stampede doctor` checks everything that a server needs; `stampede settings` prints this list.
";

/// The content of `docs/settings.md`.
pub(crate) fn markdown() -> String {
    let mut text = OPENING.to_owned();
    for group in groups() {
        text.push_str(&format!(
            "\n## {}\n\n| variable | flag | default | meaning |\n|---|---|---|---|\n",
            group.heading
        ));
        group.settings.iter().for_each(|setting| text.push_str(&markdown_row(setting)));
    }
    let planned: Vec<String> = PLANNED.iter().map(|name| format!("`{name}`")).collect();
    text.push_str(&format!(
        "\n## Not used yet\n\nA start with one of these variables logs a warning: {}.\n",
        planned.join(", ")
    ));
    text
}

fn markdown_row(setting: &Setting) -> String {
    let flag = setting.flag.map(|flag| format!("`--{}`", flag.long)).unwrap_or_default();
    let mut meaning = setting.meaning.to_owned();
    if !setting.details.is_empty() {
        meaning.push_str(&format!(". {}", setting.details.trim_end_matches('.')));
    }
    format!("| `{}` | {flag} | {} | {meaning} |\n", setting.name, setting.default)
}

/// The list for a terminal.
pub(crate) fn plain() -> String {
    let mut text = String::new();
    for group in groups() {
        text.push_str(&format!("{}\n", group.heading));
        for setting in &group.settings {
            text.push_str(&format!(
                "  {} ({})\n      {}\n",
                setting.name, setting.default, setting.meaning
            ));
        }
        text.push('\n');
    }
    text
}

/// The names of settings without a flag, for `--help`.
pub(crate) fn variables_only() -> Vec<&'static str> {
    let settings = groups().into_iter().flat_map(|group| group.settings);
    settings.filter(|setting| setting.flag.is_none()).map(|setting| setting.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == markdown(),
            "docs/settings.md differs from the table of settings. Write it with: \
             cargo run -p stampede -- settings --markdown > docs/settings.md"
        );
    }

    #[test]
    fn every_setting_is_in_the_list_with_its_default() {
        let text = plain();
        for part in ["MAX_JOB_BYTES (262144)", "SCALE_UP_PRESSURE (10)", "PORT (3000)"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
