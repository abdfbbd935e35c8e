//! The filters, and the parser that knows them.

use std::sync::LazyLock;

use liquid::model::{DateTime, Value, ValueView};
use liquid_core::{
    Display_filter, Expression, Filter, FilterParameters, FilterReflection, FromFilterParameters,
    ParseFilter, Result, Runtime,
};
use liquid_lib::stdlib;
use unicode_segmentation::UnicodeSegmentation;

/// The filters that templates may use, each with the fewest and the most values after its colon.
pub(super) const FILTERS: [(&str, usize, usize); 7] = [
    ("capitalize", 0, 0),
    ("date", 1, 1),
    ("default", 1, 1),
    ("downcase", 0, 0),
    ("strip", 0, 0),
    ("truncate", 0, 2),
    ("upcase", 0, 0),
];

/// The parser; `Err`: what is wrong with it, which no template can mend.
static PARSER: LazyLock<std::result::Result<liquid::Parser, String>> = LazyLock::new(|| {
    liquid::ParserBuilder::new()
        .block(stdlib::IfBlock)
        .block(stdlib::UnlessBlock)
        .block(stdlib::CaseBlock)
        .block(stdlib::CommentBlock)
        .filter(stdlib::Capitalize)
        .filter(stdlib::Date)
        .filter(stdlib::Default)
        .filter(stdlib::Downcase)
        .filter(stdlib::Strip)
        .filter(stdlib::Upcase)
        .filter(Truncate)
        // Written by `grammar.rs` after every output of HTML; people cannot name it.
        .filter(stdlib::Escape)
        .build()
        .map_err(|error| error.to_string())
});

/// Parses a template that `grammar.rs` wrote.
pub(super) fn parse(source: &str) -> std::result::Result<liquid::Template, String> {
    let parser = PARSER.as_ref().map_err(Clone::clone)?;
    parser.parse(source).map_err(|error| error.to_string())
}

/// Refuses a format of dates that cannot be written.
pub(super) fn check_date_format(format: &str) -> std::result::Result<(), String> {
    let wrong = || format!("{format:?} is no format of dates; write one such as \"%d.%m.%Y %H:%M\"");
    let sample = DateTime::from_str("2027-03-04 05:06:07 +0000").ok_or_else(wrong)?;
    sample.format(format).map(|_| ()).map_err(|_| wrong())
}

#[derive(Debug, FilterParameters)]
struct TruncateArgs {
    #[parameter(description = "Most characters, with the ending.", arg_type = "integer")]
    length: Option<Expression>,
    #[parameter(description = "The ending of a text that was cut.", arg_type = "str")]
    ending: Option<Expression>,
}

/// Cuts a text to so many characters as people see them (50), its ending included. The filter of the crate compares with bytes:
/// it puts dots behind Cyrillic texts that are short enough.
#[derive(Clone, ParseFilter, FilterReflection)]
#[filter(
    name = "truncate",
    description = "Cuts a text to so many characters.",
    parameters(TruncateArgs),
    parsed(TruncateFilter)
)]
struct Truncate;

#[derive(Debug, FromFilterParameters, Display_filter)]
#[name = "truncate"]
struct TruncateFilter {
    #[parameters]
    args: TruncateArgs,
}

impl Filter for TruncateFilter {
    fn evaluate(&self, input: &dyn ValueView, runtime: &dyn Runtime) -> Result<Value> {
        let args = self.args.evaluate(runtime)?;
        let most = usize::try_from(args.length.unwrap_or(50)).unwrap_or(0);
        let ending = args.ending.unwrap_or_else(|| "...".into());
        let text = input.to_kstr();
        if text.graphemes(true).take(most + 1).count() <= most {
            return Ok(Value::scalar(text.into_owned()));
        }
        let room = most.saturating_sub(ending.graphemes(true).count());
        let mut cut: String = text.graphemes(true).take(room).collect();
        cut.push_str(ending.as_str());
        Ok(Value::scalar(cut))
    }
}
