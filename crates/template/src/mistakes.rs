//! All mistakes of a template in one go. Typst stops at the first that shows when code runs, so what is
//! wrong is taken out, and the rest is tried again:
//!
//! ```text
//! #set text(fnt: "Inter", size: 9pt)      #set text(             size: 9pt)     the argument alone,
//! #box(widht: 5mm)[#fiel("name")]    ──▶  #box(          )[#fiel("name")]       or the statement but
//! #image("logo.png")                                                            for the contents in it
//! ```
//!
//! What is taken out is replaced by spaces, so that lines and columns stay. Variables that went with it are
//! not told as unknown.

use std::time::{Duration, Instant};

use typst::syntax::ast::{self, AstNode};
use typst::syntax::{LinkedNode, Side, Source, SyntaxKind};

use crate::{Bundle, Diagnostic, EventData, compile};

/// How often a template is tried again, and for how long.
const ROUNDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(3);
/// More mistakes than this help nobody.
const MOST: usize = 50;

/// All mistakes that can be found, from the top; none if it compiles. Runs people's
/// code, again and again: in production only in the sandbox.
pub fn mistakes(bundle: &Bundle, event: &EventData) -> Vec<Diagnostic> {
    let deadline = Instant::now() + PATIENCE;
    let mut hunt = Hunt { bundle: bundle.clone(), found: Vec::new(), lost: Vec::new() };
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let Err(shown) = compile(&hunt.bundle, event) else { break };
        // The next try may take as long as this one.
        let is_late = Instant::now() + began.elapsed() > deadline;
        if !hunt.take_out(shown) || is_late || hunt.found.len() >= MOST {
            break;
        }
    }
    let mut found = hunt.found;
    found.truncate(MOST);
    // They show in the order in which code runs, from the inside out; people read from the top.
    found.sort_by_key(|one| (one.file.clone(), one.line, one.column));
    found
}

struct Hunt {
    bundle: Bundle,
    found: Vec<Diagnostic>,
    /// Variables that are not there any more; an empty name stands for any.
    lost: Vec<String>,
}

impl Hunt {
    /// Notes what is wrong and takes it out; whether anything is left to be tried.
    fn take_out(&mut self, shown: Vec<Diagnostic>) -> bool {
        let mut changed = false;
        for mistake in shown {
            // The same again: it was not where it seemed to be.
            if self.found.contains(&mistake) {
                continue;
            }
            let is_new = !self.is_our_doing(&mistake);
            changed |= self.remove(&mistake);
            if is_new {
                self.found.push(mistake);
            }
        }
        changed
    }

    /// Whether a mistake shows only because of what was taken out.
    fn is_our_doing(&self, mistake: &Diagnostic) -> bool {
        let unknown = mistake.message.strip_prefix("unknown variable: ");
        unknown.is_some_and(|name| self.lost.iter().any(|lost| lost.is_empty() || lost == name))
    }

    /// Takes out the smallest part around a mistake that the rest can do without.
    fn remove(&mut self, mistake: &Diagnostic) -> bool {
        let Some((file, line)) = mistake.file.as_deref().zip(mistake.line) else { return false };
        let mut files = self.bundle.files().clone();
        let text = files.get(file).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let Some(text) = text else { return false };
        let source = Source::detached(text);
        let column = mistake.column.unwrap_or(1).saturating_sub(1) as usize;
        let at = source.lines().line_column_to_byte(line.saturating_sub(1) as usize, column);
        // With a mistake in its grammar it is unclear where anything ends.
        let (errors, _) = source.root().errors_and_warnings();
        let Some(at) = at.filter(|_| errors.is_empty()) else { return false };
        let root = LinkedNode::new(source.root());
        let Some(cut) = root.leaf_at(at, Side::After).and_then(|leaf| cut(&leaf)) else {
            return false;
        };
        let Cut { ranges, names } = cut;
        let mut rest = text.to_owned();
        for range in ranges.into_iter().rev() {
            let spaces: String =
                rest[range.clone()].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
            rest.replace_range(range, &spaces);
        }
        if rest == text {
            return false;
        }
        files.insert(file.to_owned(), rest.into_bytes());
        let Ok(bundle) = Bundle::new(files) else { return false };
        self.bundle = bundle;
        self.lost.extend(names);
        true
    }
}

/// What to take out, in order, and the variables that are lost with it.
struct Cut {
    ranges: Vec<std::ops::Range<usize>>,
    names: Vec<String>,
}

fn cut(leaf: &LinkedNode<'_>) -> Option<Cut> {
    let mut node = leaf.clone();
    loop {
        let parent = node.parent()?.clone();
        match (node.kind(), parent.kind()) {
            (SyntaxKind::Named, SyntaxKind::Args) => return Some(argument(&node)),
            (_, SyntaxKind::Markup | SyntaxKind::Code | SyntaxKind::Math) => {
                return Some(statement(&node));
            }
            _ => node = parent,
        }
    }
}

/// A named argument with its comma: what it sets has a default.
fn argument(node: &LinkedNode<'_>) -> Cut {
    let comma = node.next_sibling().filter(|next| next.kind() == SyntaxKind::Comma);
    let end = comma.map_or(node.range().end, |comma| comma.range().end);
    Cut { ranges: std::iter::once(node.range().start..end).collect(), names: Vec::new() }
}

/// A statement with its `#`, but without the contents in brackets that it wraps: they have mistakes of
/// their own.
fn statement(node: &LinkedNode<'_>) -> Cut {
    let hash = node.prev_sibling_with_trivia().filter(|before| before.kind() == SyntaxKind::Hash);
    let mut start = hash.map_or(node.range().start, |hash| hash.range().start);
    let end = node.range().end;
    let mut ranges = Vec::new();
    let contents = contents(node);
    // In code, two contents in a row would be a call of the first.
    if contents.len() == 1 || node.parent_kind() == Some(SyntaxKind::Markup) {
        for content in contents {
            ranges.push(start..content.start);
            start = content.end;
        }
    }
    ranges.push(start..end);
    Cut { ranges, names: names(node) }
}

/// The contents that a call wraps: `#box(…)[these]`.
fn contents(node: &LinkedNode<'_>) -> Vec<std::ops::Range<usize>> {
    if node.kind() != SyntaxKind::FuncCall {
        return Vec::new();
    }
    let args = node.children().filter(|child| child.kind() == SyntaxKind::Args);
    args.flat_map(|args| args.children())
        .filter(|child| child.kind() == SyntaxKind::ContentBlock)
        .map(|content| content.range())
        .collect()
}

/// The variables that a statement makes.
fn names(node: &LinkedNode<'_>) -> Vec<String> {
    if let Some(binding) = ast::LetBinding::from_untyped(node.get()) {
        let names = binding.kind().bindings();
        return names.into_iter().map(|name| name.as_str().to_owned()).collect();
    }
    if let Some(import) = ast::ModuleImport::from_untyped(node.get()) {
        return match import.imports() {
            Some(ast::Imports::Items(items)) => {
                items.iter().map(|item| item.bound_name().as_str().to_owned()).collect()
            }
            _ => vec![String::new()],
        };
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &str) -> Vec<String> {
        let bundle = Bundle::of_source(source).unwrap();
        let all = mistakes(&bundle, &EventData::sample());
        all.iter()
            .map(|m| {
                let place = format!("{}:{}", m.line.unwrap_or(0), m.column.unwrap_or(0));
                format!("{place} {}", m.message)
            })
            .collect()
    }

    #[test]
    fn mistakes_that_do_not_depend_on_each_other_are_all_told() {
        let source = "#set text(fnt: \"Inter\", szie: 9pt)\n\
                      #box(widht: 5mm)[Ä #fiel(\"name\") and #field(\"nmae\")]\n\
                      #align(centr)[#image(\"logo.png\")]\n\
                      #{\n  let x = nope()\n  x\n  1 + \"a\"\n}\n\
                      #qr(40mm)";
        let all = told(source);
        let short: Vec<&str> =
            all.iter().map(|one| one.split(';').next().unwrap_or_default()).collect();
        assert_eq!(
            short,
            [
                "1:11 unexpected argument: fnt",
                "1:25 unexpected argument: szie",
                "2:6 unexpected argument: widht",
                "2:21 unknown variable: fiel",
                "2:39 unknown field: nmae",
                "3:8 unknown variable: centr",
                "3:22 failed to load file (there is no logo.png in the bundle",
                "5:11 unknown variable: nope",
                "7:3 cannot add integer and string",
            ]
        );
    }

    #[test]
    fn what_went_with_a_mistake_is_not_told_as_missing() {
        let source = "#import \"nothing.typ\": head, foot as end\n\
                      #let (a, b) = nope\n#let f(x) = x + 1\n#f(\"y\")\n\
                      #head #end #a #b #f(2) #really";
        let all = told(source);
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(all[1].contains("unknown variable: nope"), "{all:?}");
        assert!(all[2].contains("cannot add string and integer"), "{all:?}");
        assert!(all[3].contains("unknown variable: really"), "{all:?}");
    }

    #[test]
    fn mistakes_in_the_grammar_are_told_as_they_are_and_a_sound_template_has_none() {
        assert_eq!(told("#field(\"name\") #qr(40mm)"), Vec::<String>::new());
        let all = told("#let\n#(1\n#nope");
        assert!(all.len() >= 2 && all.iter().all(|one| !one.contains("nope")), "{all:?}");
    }

    #[test]
    fn a_flood_of_mistakes_ends() {
        let source: String = (0..500).map(|n| format!("#nope{n}\n")).collect();
        assert!((1..=MOST).contains(&told(&source).len()));
    }
}
