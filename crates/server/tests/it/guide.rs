//! docs/api.md, docs/campaigns.md and docs/stickers.md: every line of their shell blocks runs against the real binary, and the answers have the
//! documented fields.
//!
//! A new section needs nothing here: all ```` ```sh ```` blocks of a page run in order in one bash, with `BASE` and `KEY` in the
//! environment, and the binary as `bin/stampede`. A ```` ```json ```` block after one is what that block prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use stampede_testkit::temp_dir;

use crate::{STAMPEDE, start};

/// Fields whose words are compared too, not only their presence.
const WORDS: [&str; 6] = ["result", "reason", "code", "status", "kind", "same"];

/// A shell block, and the JSON that it prints.
#[derive(Debug, Default)]
struct Example {
    line: usize,
    commands: String,
    answer: Option<String>,
}

/// The shell blocks of a page, each with the JSON block after it.
fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let text = block.join("\n") + "\n";
        match language {
            "sh" => {
                let example = Example { line: number + 1, commands: text, answer: None };
                examples.push(example);
            }
            "json" => examples.last_mut().expect("a shell block before").answer = Some(text),
            _ => {}
        }
    }
    examples
}

/// One script of all blocks. Each prints to a file of its own; `current` says which one runs.
fn script(examples: &[Example]) -> String {
    let mut script = "set -euo pipefail\n".to_owned();
    for (number, example) in examples.iter().enumerate() {
        script += &format!(
            "echo {number} >\"$OUT/current\"\n{{\n{}}} >\"$OUT/{number}.out\" 2>\"$OUT/{number}.err\"\n",
            example.commands
        );
    }
    script
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_default()
}

/// Compares fields, kinds and words of an answer with the documented one; `at` names the place in messages.
fn assert_same_shape(documented: &Value, answered: &Value, at: &str) {
    match (documented, answered) {
        (Value::Object(documented), Value::Object(answered)) => {
            let names = |object: &serde_json::Map<String, Value>| {
                let mut names: Vec<String> = object.keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(documented), names(answered), "the fields of {at}");
            for (name, documented) in documented {
                let at = format!("{at}.{name}");
                assert_same_shape(documented, &answered[name], &at);
                if WORDS.contains(&name.as_str()) {
                    assert_eq!(documented, &answered[name], "{at}");
                }
            }
        }
        (Value::Array(documented), Value::Array(answered)) => {
            assert_eq!(documented.is_empty(), answered.is_empty(), "the entries of {at}");
            for (number, answered) in answered.iter().enumerate() {
                let documented = documented.get(number).unwrap_or(&documented[0]);
                assert_same_shape(documented, answered, &format!("{at}[{number}]"));
            }
        }
        _ => {
            assert_eq!(
                std::mem::discriminant(documented),
                std::mem::discriminant(answered),
                "{at} is documented as {documented} and was {answered}"
            );
        }
    }
}

#[tokio::test]
async fn every_example_of_the_guide_runs_and_answers_as_it_says() {
    walk("docs/api.md", 16).await;
}

#[tokio::test]
async fn a_campaign_is_finished_by_the_lines_of_its_guide() {
    walk("docs/campaigns.md", 8).await;
}

#[tokio::test]
async fn every_line_of_the_guide_to_stickers_runs() {
    walk("docs/stickers.md", 7).await;
}

/// Runs all examples of a page, which has at least so many.
async fn walk(page: &str, least: usize) {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let examples = examples(&fs::read_to_string(path).unwrap());
    assert!(examples.len() >= least, "{}", examples.len());
    let app = start(&[]).await;
    let (made, key) = app.command(&["token", "create", "--role", "organiser", "--user", "ann"]);
    assert!(made, "{key}");
    let folder = temp_dir();
    fs::create_dir(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(STAMPEDE, folder.path().join("bin/stampede")).unwrap();
    let output = Command::new("bash")
        .args(["-c", &script(&examples)])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([("BASE", app.url().as_str()), ("KEY", key.trim())])
        .env("OUT", folder.path())
        .output()
        .unwrap();
    let current = read(folder.path(), "current").trim().to_owned();
    assert!(
        output.status.success(),
        "the block after line {} of {page} failed: {}{}{}",
        examples[current.parse::<usize>().unwrap_or_default()].line,
        read(folder.path(), &format!("{current}.out")),
        read(folder.path(), &format!("{current}.err")),
        String::from_utf8_lossy(&output.stderr)
    );
    for (number, example) in examples.iter().enumerate() {
        let Some(documented) = &example.answer else { continue };
        let at = format!("the answer of the block after line {} of {page}", example.line);
        let said = read(folder.path(), &format!("{number}.out"));
        let parse = |text: &str| -> Value {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{at}: {error}: {text}"))
        };
        assert_same_shape(&parse(documented), &parse(&said), &at);
    }
}
