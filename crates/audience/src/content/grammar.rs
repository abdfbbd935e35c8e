//! Which outputs and tags there are. People's templates are read here, and written anew for the crate `liquid`: fields are called
//! `f0`, `f1` …, outputs of HTML are escaped, comments and raw text are gone.

mod expressions;

use self::expressions::Words;
use super::compile::Escape;
use super::html::{Html, Shown};
use super::known::nearest;
use super::scan::{Kind, Piece, Place, Places, after, end_of, guard, next};
use super::tokens::{Token, tokens};

/// A mistake, without its place.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) message: String,
    pub(super) nearest: Option<String>,
}

impl From<String> for Told {
    fn from(message: String) -> Self {
        Self { message, nearest: None }
    }
}

impl From<&str> for Told {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// A template as the crate `liquid` gets it.
#[derive(Default)]
pub(super) struct Written {
    pub(super) source: String,
    /// Where it reads which field.
    pub(super) uses: Vec<(Place, String)>,
    pub(super) mistakes: Vec<(Place, Told)>,
}

/// The tags.
const TAGS: [&str; 12] = [
    "if",
    "elsif",
    "else",
    "endif",
    "unless",
    "endunless",
    "case",
    "when",
    "endcase",
    "comment",
    "raw",
    "endraw",
];
/// Tags of Liquid that are left out on purpose.
const LEFT_OUT: [&str; 17] = [
    "for",
    "endfor",
    "break",
    "continue",
    "tablerow",
    "cycle",
    "assign",
    "capture",
    "endcapture",
    "increment",
    "decrement",
    "include",
    "render",
    "layout",
    "echo",
    "liquid",
    "ifchanged",
];
/// Most words of one output or tag: the crate `liquid` recurses over long conditions.
const MOST_WORDS: usize = 300;
/// The name of a field for the crate `liquid`.
pub(super) fn field_name(index: usize) -> String {
    format!("f{index}")
}

/// Reads a template and writes it anew. Fields that are new are added to `fields`.
pub(super) fn write(source: &str, escape: Escape, fields: &mut Vec<String>) -> Written {
    let mut written = Written::default();
    if let Err(message) = guard(source) {
        written.mistakes.push((Place::WHOLE, message.into()));
        return written;
    }
    let html = (escape == Escape::Html).then(Html::new);
    let (places, blocks) = (Places::new(source), Vec::new());
    let mut writer = Writer { source, html, fields, written, places, blocks };
    writer.pieces();
    for (block, begins) in std::mem::take(&mut writer.blocks) {
        let message = format!("the block {0} is never closed; add {{% end{0} %}}", block.word());
        writer.mistake(begins, message);
    }
    writer.written
}

/// A block that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    If,
    Unless,
    Case,
    /// A block after its `else`.
    Else(&'static str),
}

impl Block {
    fn word(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Unless => "unless",
            Self::Case => "case",
            Self::Else(word) => word,
        }
    }
}

struct Writer<'t, 'f> {
    source: &'t str,
    /// Where in the HTML the writer is; `None`: the values of the part are not escaped.
    html: Option<Html>,
    fields: &'f mut Vec<String>,
    written: Written,
    places: Places<'t>,
    /// Blocks that are open, each with the position where it begins.
    blocks: Vec<(Block, usize)>,
}

impl<'t> Writer<'t, '_> {
    fn pieces(&mut self) {
        let mut at = 0;
        loop {
            match next(self.source, at) {
                Ok(None) => return,
                Ok(Some(piece)) => at = self.piece(&piece),
                Err(begins) => {
                    let close = if self.source[begins..].starts_with("{{") { "}}" } else { "%}" };
                    return self.mistake(
                        begins,
                        format!("is never closed; add {close}, and look for a quote that is open"),
                    );
                }
            }
        }
    }

    /// Writes one piece; returns where the next one begins.
    fn piece(&mut self, piece: &Piece<'t>) -> usize {
        let words = if piece.kind == Kind::Text { 0 } else { tokens(piece.inner).len() };
        if words > MOST_WORDS {
            self.mistake(
                piece.begins,
                format!("has more than {MOST_WORDS} words, has {words}; use fewer"),
            );
            return after(piece);
        }
        match piece.kind {
            Kind::Text => {
                self.read_html(piece.inner);
                self.written.source.push_str(piece.inner);
            }
            Kind::Output => {
                let words = Words::new(piece);
                if let Some(chain) = self.chain(words) {
                    if let Some(Err(message)) =
                        self.html.as_ref().map(|html| html.output(shown(piece)))
                    {
                        self.mistake(piece.begins, message);
                    }
                    let escape = if self.html.is_some() { " | escape" } else { "" };
                    self.braces(piece, "{{", &format!("{chain}{escape}"), "}}");
                }
            }
            Kind::Tag => return self.tag(piece),
        }
        after(piece)
    }

    fn read_html(&mut self, text: &str) {
        if let Some(html) = &mut self.html {
            html.read(text);
        }
    }

    fn begin_in_html(&mut self, block: Block) {
        if let Some(html) = &mut self.html {
            html.begin(block == Block::Case);
        }
    }

    fn branch_in_html(&mut self, is_else: bool) {
        if let Some(html) = &mut self.html {
            html.branch(is_else);
        }
    }

    fn braces(&mut self, piece: &Piece<'_>, open: &str, inner: &str, close: &str) {
        let hyphen = |trims| if trims { "-" } else { "" };
        let (before, after) = (hyphen(piece.trims_before), hyphen(piece.trims_after));
        self.written.source.push_str(&format!("{open}{before} {inner} {after}{close}"));
    }

    fn tag(&mut self, piece: &Piece<'t>) -> usize {
        let mut words = Words::new(piece);
        let (position, name) = match words.take() {
            Some((position, Token::Name(name))) => (position, name),
            _ => {
                self.mistake(
                    piece.begins,
                    "is an empty tag; write if, unless, case, comment or raw",
                );
                return after(piece);
            }
        };
        match name {
            "comment" | "raw" => return self.verbatim(piece, name),
            "if" | "unless" => {
                let block = if name == "if" { Block::If } else { Block::Unless };
                self.blocks.push((block, piece.begins));
                self.begin_in_html(block);
                self.condition_tag(piece, name, words);
            }
            "elsif" => match self.blocks.last() {
                Some((Block::If, _)) => {
                    self.branch_in_html(false);
                    self.condition_tag(piece, name, words);
                }
                _ => self.mistake(position, "elsif stands outside of an if, or after its else"),
            },
            "case" => {
                self.blocks.push((Block::Case, piece.begins));
                self.begin_in_html(Block::Case);
                if let Some(value) = self.value(&mut words) {
                    self.end(piece, &format!("case {value}"), words);
                }
            }
            "when" => match self.blocks.last() {
                Some((Block::Case, _)) => {
                    self.branch_in_html(false);
                    self.when(piece, words);
                }
                _ => self.mistake(position, "when stands outside of a case, or after its else"),
            },
            "else" => match self.blocks.last_mut() {
                Some((block, _)) if !matches!(block, Block::Else(_)) => {
                    *block = Block::Else(block.word());
                    self.branch_in_html(true);
                    self.end(piece, "else", words);
                }
                _ => self.mistake(position, "else stands outside of a block, or is its second"),
            },
            "endif" | "endunless" | "endcase" => match self.blocks.pop() {
                Some((block, _)) if name.strip_prefix("end") == Some(block.word()) => {
                    if let Some(Err(message)) = self.html.as_mut().map(Html::end) {
                        self.mistake(piece.begins, message);
                    }
                    self.end(piece, name, words);
                }
                Some((block, begins)) => {
                    let message = format!(
                        "{name} closes a block that is open as {0}; write end{0}",
                        block.word()
                    );
                    self.blocks.push((block, begins));
                    self.mistake(position, message);
                }
                None => self.mistake(position, format!("{name} closes no block; remove it")),
            },
            name => self.unknown_tag(position, name),
        }
        after(piece)
    }

    fn unknown_tag(&mut self, position: usize, name: &str) {
        let told = if LEFT_OUT.contains(&name) {
            format!(
                "the tag {name} is not allowed: templates have no loops, assignments and includes"
            )
            .into()
        } else {
            named("tag", name, &TAGS)
        };
        self.mistake(position, told);
    }

    /// Writes the content of a raw block as text; passes over a comment.
    fn verbatim(&mut self, piece: &Piece<'t>, name: &str) -> usize {
        let Some((end, closing)) = end_of(self.source, after(piece), &format!("end{name}")) else {
            self.mistake(
                piece.begins,
                format!("the block {name} is never closed; add {{% end{name} %}}"),
            );
            return self.source.len();
        };
        // Empty comments keep what the outer hyphens do to white space; the inner ones are obeyed here.
        let hyphen = if piece.trims_before { "-" } else { "" };
        self.written.source.push_str(&format!("{{%{hyphen} comment %}}{{% endcomment %}}"));
        if name == "raw" {
            let raw = &self.source[after(piece)..end];
            let raw = if piece.trims_after { raw.trim_start() } else { raw };
            let raw = if closing.trims_before { raw.trim_end() } else { raw };
            self.read_html(raw);
            let braces = raw.replace("{{", "\u{0}o").replace("{%", "\u{0}t");
            let braces = braces.replace("\u{0}o", "{{ \"{{\" }}").replace("\u{0}t", "{{ \"{%\" }}");
            self.written.source.push_str(&braces);
        }
        let hyphen = if closing.trims_after { "-" } else { "" };
        self.written.source.push_str(&format!("{{% comment %}}{{% endcomment {hyphen}%}}"));
        after(&closing)
    }

    /// Writes a tag whose words are all read.
    fn end(&mut self, piece: &Piece<'_>, inner: &str, mut words: Words<'_>) {
        match words.take() {
            None => self.braces(piece, "{%", inner, "%}"),
            Some((position, token)) => self.unexpected(position, token),
        }
    }

    fn refuse<T>(&mut self, position: usize, token: Token<'_>) -> Option<T> {
        self.unexpected(position, token);
        None
    }

    fn unexpected(&mut self, position: usize, token: Token<'_>) {
        let message = match token {
            Token::Name(word) | Token::Text(word) | Token::Number(word) | Token::Operator(word) => {
                let word: String = word.chars().take(40).collect();
                format!("{word} is not expected here")
            }
            Token::Pipe => "| is not expected here; filters stand in {{ }} only".to_owned(),
            Token::Colon => ": is not expected here".to_owned(),
            Token::Comma => ", is not expected here".to_owned(),
            Token::Other('[' | ']' | '(' | ')') => "brackets are not allowed".to_owned(),
            Token::Other(quote @ ('"' | '\'')) => format!("the quote {quote} is never closed"),
            Token::Other(c) => format!("{c:?} is not expected here"),
        };
        self.mistake(position, message);
    }

    fn mistake(&mut self, position: usize, told: impl Into<Told>) {
        let place = self.places.of(position);
        self.written.mistakes.push((place, told.into()));
    }
}

/// What an output shows.
fn shown(piece: &Piece<'_>) -> Shown {
    match tokens(piece.inner).as_slice() {
        [(_, Token::Name("ticketUrl" | "unsubscribeUrl"))] => Shown::OwnAddress,
        _ => Shown::Anything,
    }
}

/// The message about an unknown name.
fn named(kind: &str, name: &str, known: &[&str]) -> Told {
    let nearest = nearest(name, known.iter().copied());
    let meant = match &nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("known are {}", known.join(", ")),
    };
    Told { message: format!("there is no {kind} {name}; {meant}"), nearest }
}
