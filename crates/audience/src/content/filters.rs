//! The filters, and the parser that knows them.

use std::sync::LazyLock;

use jiff::civil;
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
        .filter(Date)
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
    let wrong =
        || format!("{format:?} is no format of dates; write one such as \"%d.%m.%Y %H:%M\"");
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

#[derive(Debug, FilterParameters)]
struct DateArgs {
    #[parameter(description = "The format.", arg_type = "str")]
    format: Expression,
}

/// Writes a date in a format; a text that is no date stays as it is. The filter of the crate reads only dates with a time and an
/// offset, but columns have `2027-03-04` and `04.03.2027`. A time is written as it is given: offsets are not converted.
#[derive(Clone, ParseFilter, FilterReflection)]
#[filter(
    name = "date",
    description = "Writes a date in a format.",
    parameters(DateArgs),
    parsed(DateFilter)
)]
struct Date;

#[derive(Debug, FromFilterParameters, Display_filter)]
#[name = "date"]
struct DateFilter {
    #[parameters]
    args: DateArgs,
}

impl Filter for DateFilter {
    fn evaluate(&self, input: &dyn ValueView, runtime: &dyn Runtime) -> Result<Value> {
        let args = self.args.evaluate(runtime)?;
        let text = input.to_kstr();
        let date = date_of(text.trim()).or_else(|| DateTime::from_str(text.trim()));
        // A format that comes from a field may be wrong: the text stays as it is then, too.
        let written = date.and_then(|date| date.format(args.format.as_str()).ok());
        Ok(Value::scalar(written.unwrap_or_else(|| text.into_string())))
    }
}

/// A date without a time, or with one, as ISO 8601 and German and Russian spreadsheets write it.
fn date_of(text: &str) -> Option<DateTime> {
    let local = ["%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M"];
    let local = || local.iter().find_map(|format| civil::DateTime::strptime(format, text).ok());
    let day = || {
        civil::Date::strptime("%d.%m.%Y", text)
            .ok()
            .map(|day| day.to_datetime(civil::Time::midnight()))
    };
    let iso = text.strip_suffix(['Z', 'z']).unwrap_or(text).parse::<civil::DateTime>().ok();
    let date = iso.or_else(local).or_else(day)?;
    DateTime::from_str(&date.strftime("%Y-%m-%d %H:%M:%S +0000").to_string())
}
