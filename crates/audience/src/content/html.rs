//! Where in the HTML a field stands. Escaping protects texts and values in quotes; it does not keep an address from being
//! `javascript:…`, nor a script from being one. Such places are refused when the template is saved.
//!
//! | a field stands | |
//! |---|---|
//! | between tags, in a comment, in the quotes of an attribute | allowed |
//! | in the quotes of an attribute with an address (`href`, `src` …) | behind a beginning that is written out, such as `https://example.com/`; or `ticketUrl` and `unsubscribeUrl` first |
//! | in the quotes of an attribute with code (`onclick`, `style`, `srcdoc` …) | refused |
//! | in a tag, outside of quotes | refused |
//! | inside of `<script>` and `<style>` | refused |
//!
//! The template is read from its beginning to its end. Every branch of a block begins where the block begins, and all of them
//! must end in the same place: else nobody could say where the fields behind the block stand.
//!
//! Browsers read HTML by more rules than these. A template with a mistake in its HTML may be refused here although it is safe;
//! what browsers read as an address, a script or a tag must be read as one here.

/// Attributes whose values are addresses.
const ADDRESSES: [&str; 13] = [
    "action",
    "background",
    "cite",
    "data",
    "formaction",
    "href",
    "longdesc",
    "lowsrc",
    "ping",
    "poster",
    "src",
    "srcset",
    "xlink:href",
];
/// Attributes whose values are code, besides those that begin with `on`.
const CODE: [&str; 3] = ["content", "srcdoc", "style"];
/// Elements that hold code.
const CODE_ELEMENTS: [&str; 2] = ["script", "style"];
/// Schemes of addresses whose host has to be written out.
const WITH_HOST: [&str; 3] = ["http", "https", "tg"];
/// Schemes of addresses without a host.
const WITHOUT_HOST: [&str; 3] = ["mailto", "sms", "tel"];
/// The longest beginning of an address that is looked at, in bytes.
const LONGEST_BEGINNING: usize = 2_000;

/// What an output shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// An address that this server makes, and nothing else; it may be empty.
    OwnAddress,
    /// Anything.
    Anything,
}

/// A place in HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Between tags.
    Text,
    /// Behind a `<`.
    Opened,
    /// In a comment or declaration, which ends at the next `>`: comments of mails hold HTML that Outlook reads.
    Declaration,
    /// In the name of a tag: what of it was read, in lower case.
    TagName(String),
    /// In a tag, before the name of an attribute.
    Tag(Inside),
    /// In the name of an attribute, in lower case.
    AttributeName(Inside, String),
    /// Behind the name of an attribute and a space.
    AfterName(Inside, String),
    /// Behind the `=` of an attribute.
    BeforeValue(Inside, String),
    /// In the value of an attribute; without a quote it ends at a space.
    Value(Inside, String, Option<char>, Beginning),
    /// Inside of an element with code: its name, and the letters that were read last.
    Code(&'static str, String),
}

/// What follows a tag: text (`None`), or the code of this element.
type Inside = Option<&'static str>;

/// The beginning of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Beginning {
    /// It is written out so far.
    Written(String),
    /// It fixes where an address leads.
    Fixed,
    /// It is too long to say, or depends on a condition.
    Unclear,
}

/// A block that is open.
#[derive(Debug)]
struct Block {
    /// Where it begins.
    begins: Place,
    /// Where its branches end so far; `None`: none has ended.
    ends: Option<Result<Place, Differ>>,
    /// What was read last belongs to a branch. Before the first `when` of a `case` there is none.
    in_branch: bool,
    /// One of its branches is taken in any case.
    has_else: bool,
}

/// Two branches end in different places.
#[derive(Debug)]
struct Differ;

/// Reads the HTML of a template.
#[derive(Debug)]
pub(super) struct Html {
    place: Place,
    blocks: Vec<Block>,
}

impl Html {
    pub(super) fn new() -> Self {
        Self { place: Place::Text, blocks: Vec::new() }
    }

    /// Reads text of the template.
    pub(super) fn read(&mut self, text: &str) {
        for c in text.chars() {
            let place = std::mem::replace(&mut self.place, Place::Text);
            self.place = place.after(c);
        }
    }

    /// Whether a field may stand here; else why not.
    pub(super) fn output(&self, shown: Shown) -> Result<(), String> {
        let (name, quote, beginning) = match &self.place {
            Place::Text | Place::Declaration => return Ok(()),
            Place::Value(_, name, quote, beginning) => (name, quote, beginning),
            Place::BeforeValue(_, name) => return Err(unquoted(name)),
            Place::Code(element, _) => {
                return Err(format!(
                    "a field cannot stand inside of <{element}>: it would be code"
                ));
            }
            Place::Opened
            | Place::TagName(_)
            | Place::Tag(_)
            | Place::AttributeName(..)
            | Place::AfterName(..) => {
                return Err("a field cannot stand in a tag, outside of the quotes of a value; \
                     write &lt; for a < that begins no tag"
                    .to_owned());
            }
        };
        let is_code = name.starts_with("on") || CODE.contains(&name.as_str());
        let is_address = ADDRESSES.contains(&name.as_str());
        let is_first = *beginning == Beginning::Written(String::new());
        match shown {
            _ if quote.is_none() => Err(unquoted(name)),
            _ if is_code => Err(format!("a field cannot stand in {name}: it would be code")),
            _ if !is_address || *beginning == Beginning::Fixed => Ok(()),
            Shown::OwnAddress if is_first => Ok(()),
            _ => Err(format!(
                "a field in {name} could lead anywhere or be a script; write out how the address begins, \
                 such as https://example.com/, or use ticketUrl or unsubscribeUrl alone"
            )),
        }
    }

    /// Begins a block. A `case` has no branch before its first `when`.
    pub(super) fn begin(&mut self, is_case: bool) {
        self.settle();
        let begins = self.place.clone();
        self.blocks.push(Block { begins, ends: None, in_branch: !is_case, has_else: false });
    }

    /// Begins another branch of the block.
    pub(super) fn branch(&mut self, is_else: bool) {
        self.settle();
        if let Some(block) = self.blocks.last_mut() {
            if block.in_branch {
                block.end_in(self.place.clone());
            }
            block.in_branch = true;
            block.has_else |= is_else;
            self.place = block.begins.clone();
        }
    }

    /// Ends the block; else why nobody can say where its end is.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.settle();
        let Some(mut block) = self.blocks.pop() else { return Ok(()) };
        if block.in_branch {
            block.end_in(self.place.clone());
        }
        if !block.has_else {
            block.end_in(block.begins.clone());
        }
        match block.ends {
            Some(Ok(place)) => {
                self.place = place;
                Ok(())
            }
            None | Some(Err(Differ)) => {
                self.place = block.begins;
                Err("the branches of this block end in different places of the HTML; close in each of them the \
                     tags and quotes that it opens"
                    .to_owned())
            }
        }
    }

    /// A block ends the name of a tag or an attribute.
    fn settle(&mut self) {
        let place = std::mem::replace(&mut self.place, Place::Text);
        self.place = match place {
            Place::TagName(name) => Place::Tag(inside(&name)),
            Place::AttributeName(inside, _) | Place::AfterName(inside, _) => Place::Tag(inside),
            place => place,
        };
    }
}

impl Block {
    fn end_in(&mut self, place: Place) {
        self.ends = Some(match self.ends.take() {
            None => Ok(place),
            Some(Ok(other)) => other.join(place),
            Some(Err(Differ)) => Err(Differ),
        });
    }
}

impl Place {
    /// The place behind the next letter.
    fn after(self, c: char) -> Self {
        match self {
            Self::Text if c == '<' => Self::Opened,
            Self::Text => Self::Text,
            Self::Opened => match c {
                '!' | '?' => Self::Declaration,
                '<' => Self::Opened,
                '/' => Self::TagName(c.to_string()),
                _ if c.is_ascii_alphabetic() => Self::TagName(c.to_ascii_lowercase().to_string()),
                _ => Self::Text,
            },
            Self::Declaration if c == '>' => Self::Text,
            Self::Declaration => Self::Declaration,
            Self::TagName(name) if c == '>' => Self::behind(inside(&name)),
            Self::TagName(name) if c == '/' || c.is_whitespace() => Self::Tag(inside(&name)),
            Self::TagName(name) => Self::TagName(with(name, c)),
            Self::Tag(inside) => Self::in_tag(inside, c),
            Self::AttributeName(inside, name) => match c {
                '=' => Self::BeforeValue(inside, name),
                _ if c.is_whitespace() => Self::AfterName(inside, name),
                '>' | '/' => Self::in_tag(inside, c),
                _ => Self::AttributeName(inside, with(name, c)),
            },
            Self::AfterName(inside, name) => match c {
                '=' => Self::BeforeValue(inside, name),
                _ if c.is_whitespace() => Self::AfterName(inside, name),
                _ => Self::in_tag(inside, c),
            },
            Self::BeforeValue(inside, name) => match c {
                '"' | '\'' => Self::Value(inside, name, Some(c), Beginning::new()),
                '>' => Self::behind(inside),
                _ if c.is_whitespace() => Self::BeforeValue(inside, name),
                _ => Self::Value(inside, name, None, Beginning::new().after(c)),
            },
            Self::Value(inside, _, Some(quote), _) if c == quote => Self::Tag(inside),
            Self::Value(inside, _, None, _) if c == '>' => Self::behind(inside),
            Self::Value(inside, _, None, _) if c.is_whitespace() => Self::Tag(inside),
            Self::Value(inside, name, quote, beginning) => {
                Self::Value(inside, name, quote, beginning.after(c))
            }
            Self::Code(element, last) => {
                let last = with(last, c);
                // As many letters as the end of the element has.
                let cut = last.len().saturating_sub("</".len() + element.len());
                let last = &last[last.ceil_char_boundary(cut)..];
                match last.strip_prefix("</") == Some(element) {
                    true => Self::TagName(format!("/{element}")),
                    false => Self::Code(element, last.to_owned()),
                }
            }
        }
    }

    /// The place behind a letter in a tag, before the name of an attribute.
    fn in_tag(inside: Inside, c: char) -> Self {
        match c {
            '>' => Self::behind(inside),
            _ if c == '/' || c.is_whitespace() => Self::Tag(inside),
            _ => Self::AttributeName(inside, with(String::new(), c)),
        }
    }

    /// The place behind a tag.
    fn behind(inside: Inside) -> Self {
        inside.map_or(Self::Text, |element| Self::Code(element, String::new()))
    }

    /// The place behind two branches.
    fn join(self, other: Self) -> Result<Self, Differ> {
        match (self, other) {
            (one, other) if one == other => Ok(one),
            (
                Self::Value(inside, name, quote, _),
                Self::Value(inside_too, name_too, quote_too, _),
            ) if (inside, &name, quote) == (inside_too, &name_too, quote_too) => {
                Ok(Self::Value(inside, name, quote, Beginning::Unclear))
            }
            // Which code the branches hold makes no difference, nor how far its end was read.
            (Self::Code(element, _), Self::Code(element_too, _)) if element == element_too => {
                Ok(Self::Code(element, String::new()))
            }
            _ => Err(Differ),
        }
    }
}

impl Beginning {
    fn new() -> Self {
        Self::Written(String::new())
    }

    fn after(self, c: char) -> Self {
        match self {
            // Browsers leave out spaces before an address.
            Self::Written(text) if text.is_empty() && c.is_whitespace() => Self::Written(text),
            Self::Written(mut text) => {
                text.push(c);
                match text.len() {
                    _ if matches!(c, ':' | '/' | '?' | '#' | '&') && is_fixed(&text) => Self::Fixed,
                    0..LONGEST_BEGINNING => Self::Written(text),
                    _ => Self::Unclear,
                }
            }
            beginning => beginning,
        }
    }
}

/// Whether an address with this beginning leads where the beginning says, whatever follows.
fn is_fixed(text: &str) -> bool {
    // A part of the page that is shown: it has no scheme.
    if text.starts_with(['?', '#', '&']) {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_one_of = |known: &[&str]| known.iter().any(|one| one.eq_ignore_ascii_case(scheme));
    let host = rest.strip_prefix("//").and_then(|rest| rest.find(['/', '?', '#']));
    is_one_of(&WITHOUT_HOST) || is_one_of(&WITH_HOST) && host.is_some_and(|length| length > 0)
}

fn unquoted(name: &str) -> String {
    format!("the value of {name} needs quotes around it, because a field stands in it")
}

fn with(mut name: String, c: char) -> String {
    name.push(c.to_ascii_lowercase());
    name
}

/// What follows a tag with this name.
fn inside(name: &str) -> Inside {
    CODE_ELEMENTS.into_iter().find(|element| *element == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Html {
        let mut html = Html::new();
        html.read(text);
        html
    }

    fn refusal(text: &str) -> String {
        at(text).output(Shown::Anything).err().unwrap_or_default()
    }

    #[test]
    fn fields_stand_between_tags_and_in_the_quotes_of_most_attributes() {
        for text in [
            "",
            "Hello ",
            "<p>",
            "<p class='a' id=b>",
            "<p title=\"",
            "<img alt='x ",
            "<IMG ALT = \"",
            "<br/>",
            "<!-- ",
            "<!DOCTYPE html><p>",
            "1 < 2, and ",
            "<script src=\"x\"></script>",
            "<style>a > b {}</STYLE >",
            "<p title='<script>'>",
            "<p title=\">\" class=\"",
        ] {
            assert_eq!(refusal(text), "", "{text}");
        }
    }

    #[test]
    fn fields_do_not_stand_in_tags_outside_of_quotes() {
        for text in ["<", "</", "<a", "<a ", "<a href", "<a href ", "<a href=\"x\"", "<a b=c "] {
            assert!(refusal(text).contains("cannot stand in a tag"), "{text}");
        }
        for text in ["<a title=", "<a title= ", "<a title=x", "<img width=1"] {
            assert!(refusal(text).contains("needs quotes"), "{text}");
        }
    }

    #[test]
    fn fields_do_not_stand_in_code() {
        for text in [
            "<script>",
            "<SCRIPT type=\"x\">let a = \"",
            "<script>'</p>",
            "<script>a</scrip",
            "<style>p { color: ",
            "<style\n>",
        ] {
            assert!(refusal(text).contains("cannot stand inside of <s"), "{text}");
        }
        for text in
            ["<p style=\"color: ", "<p onClick='", "<iframe srcdoc=\"", "<meta content=\"0;"]
        {
            assert!(refusal(text).contains("it would be code"), "{text}");
        }
    }

    #[test]
    fn an_address_begins_as_it_is_written_in_the_template() {
        for text in [
            "<a href=\"https://example.com/",
            "<a href=' HTTPS://example.com/a?b=",
            "<a href=\"http://example.com?",
            "<a href=\"tg://user?id=",
            "<a href=\"mailto:",
            "<a href=\"tel:",
            "<a href=\"#",
            "<img src=\"https://example.com/a/",
            "<v:rect xlink:href=\"https://example.com/",
        ] {
            assert_eq!(refusal(text), "", "{text}");
        }
        for text in [
            "<a href=\"",
            "<a HREF = '",
            "<img src=\" ",
            "<form action=\"",
            "<!--[if mso]><a href=\"",
            "<a href=\"https:",
            "<a href=\"https://",
            "<a href=\"https:///",
            "<a href=\"https://example.com",
            "<a href=\"/",
            "<a href=\"//example.com/",
            "<a href=\"javascript:",
            "<a href=\"javascript://example.com/",
            "<a href=\"data:text/html,",
            "<a href=\"x",
        ] {
            assert!(refusal(text).contains("could lead anywhere"), "{text}");
        }
        let long = format!("<a href=\"{}", "x".repeat(60_000));
        assert!(refusal(&format!("{long}://example.com/")).contains("could lead anywhere"));
    }

    #[test]
    fn addresses_of_this_server_stand_first() {
        let own = |text: &str| at(text).output(Shown::OwnAddress);
        assert_eq!(own("<a href=\""), Ok(()));
        assert_eq!(own("<a href=\"https://example.com/?to="), Ok(()));
        assert!(own("<a href=\"https://example.com").is_err());
        assert!(own("<a href=").is_err());
        assert!(own("<script>").is_err());
    }

    #[test]
    fn all_branches_of_a_block_end_in_one_place() {
        let branches = |before: &str, branches: &[&str], has_else: bool| {
            let mut html = at(before);
            html.begin(false);
            for (number, branch) in branches.iter().enumerate() {
                if number > 0 {
                    html.branch(has_else && number + 1 == branches.len());
                }
                html.read(branch);
            }
            html.end().map(|()| html.output(Shown::Anything))
        };
        assert_eq!(branches("<p>", &["<b>", "<i>"], true), Ok(Ok(())));
        assert_eq!(branches("<p title=\"", &["x"], false), Ok(Ok(())));
        // The branches are two beginnings, not one.
        let two = ["https://example.com/", "https://example.org/"];
        assert_eq!(branches("<a href=\"", &two, true), Ok(Ok(())));
        assert!(branches("<a href=\"", &two, false).unwrap().is_err());
        assert!(branches("<a href=\"", &["https://example.com/", ""], true).unwrap().is_err());
        assert!(branches("<a href=\"https://example.com", &["/a"], false).unwrap().is_err());
        for (before, inside) in
            [("<a href='x'", " target='_blank'"), ("<input", " checked"), ("<td", " class='x' ")]
        {
            let html = branches(before, &[inside], false).unwrap().unwrap_err();
            assert!(html.contains("cannot stand in a tag"), "{before}: {html}");
        }
        for (before, inside) in [("", "<a href=\""), ("<a href=\"", "\">"), ("", "<script>")] {
            let told = branches(before, &[inside], false).unwrap_err();
            assert!(told.contains("different places"), "{before}: {told}");
        }
        let mut case = at("<a href=\"");
        case.begin(true);
        for (branch, is_else) in [("https://a.example/", false), ("https://b.example/", true)] {
            case.branch(is_else);
            case.read(branch);
        }
        assert_eq!(case.end(), Ok(()));
        assert_eq!(case.output(Shown::Anything), Ok(()));
    }
}
