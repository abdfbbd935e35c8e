//! What readers read: every field in its own box, in the order in which a person reads it, in every script,
//! stamped and typeset; codes from a coarse print; files without a fault.

use stampede_model::TicketDocument;
use stampede_render::compiled::{Field, FieldKind, Stamped, TextField};
use stampede_render::{Prepared, Values, Warning, preflight};
use stampede_template::{Design, EventData, Published, compile, shipped, typeset};

use crate::readers::{self, Part};
use crate::{NAMES, named, published, slow, stamp_ticket, stamped, typeset_source};

/// Names whose letters must be right, though poppler guesses spaces between some of them: where the
/// direction changes, and after marks below a letter (pdfium finds all spaces).
const HARD_NAMES: &[&str] = &[
    "Dr. محمد Ali",
    "محمد 2026 علي",
    "क्षत्रिय श्रीकृष्णन्",
    "ผู้ใหญ่ กล้า",
    "たなか　さくら",
    "Ngô Thị Ánh",
    "Անահիտ Սարգսյան",
    "ნინო",
    "fi ffl Office",
];

/// Typst gives the points of leftward letters before the letters, which poppler reverses with them; the
/// stamper does not.
const POINTED: &str = "שָׁלוֹם בֶּן־דָּוִד";

/// The baselines of a field: poppler asks where a letter stands, and what is above and below belongs to
/// its neighbours.
fn part_of(field: &Field, text: &TextField) -> Part {
    let [a, b, c, d, e, f] = field.transform;
    let last = (text.lines - 1) as f32 * text.line_height * text.size;
    let [(x0, y0), (x1, y1)] =
        [(-2.0, -0.4 * text.size), (text.width + 2.0, last + 0.2 * text.size)]
            .map(|(x, y)| (a * x + c * y + e, b * x + d * y + f));
    Part {
        page: field.page,
        left: x0.min(x1),
        top: y0.min(y1),
        right: x0.max(x1),
        bottom: y0.max(y1),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Spaces {
    Count,
    AreGuessed,
}

/// Hyphens are left out: at the end of a line poppler takes them for a word that was divided there.
fn letters(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect()
}

/// Whether a box says the value: whole, or as far as it fits, if that was warned of.
fn says(read: &str, value: &str, spaces: Spaces, cut: bool) -> bool {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if !cut && spaces == Spaces::Count && !value.contains('-') {
        return read == value;
    }
    let (read, value) = (letters(read), letters(&value));
    // Where it is cut, a word may have been broken between two lines, or the end is missing.
    match read.strip_suffix('…').filter(|_| cut) {
        Some(begin) => value.starts_with(begin) && begin.chars().count() >= 20,
        None => read == value,
    }
}

/// A design, compiled.
struct Designed<'a> {
    design: &'a Design,
    published: Published,
    template: Stamped,
}

impl<'a> Designed<'a> {
    fn new(design: &'a Design) -> Self {
        let published = compile(&design.bundle, &EventData::sample()).unwrap();
        Self { design, template: stamped(&published), published }
    }

    /// The ticket, made in both ways.
    fn made(&self, ticket: &TicketDocument) -> [(&'static str, Vec<u8>); 2] {
        let typeset = typeset(&slow(&self.design.bundle), ticket).unwrap();
        [("stamped", stamp_ticket(&self.published, ticket)), ("typeset", typeset)]
    }

    /// Which fields preflight warns of.
    fn cut(&self, ticket: &TicketDocument) -> Vec<String> {
        let prepared = Prepared::new(self.template.clone()).unwrap();
        let fields = ticket.fields();
        let pairs: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_ref())).collect();
        let warnings = preflight(&prepared, &Values { id: &ticket.id, fields: &pairs });
        let cut = |warning| match warning {
            Warning::DoesNotFit { field } => field,
            other => panic!("{other}"),
        };
        warnings.into_iter().map(cut).collect()
    }

    /// Fails unless every field for which `which` holds is read as its value.
    fn assert_read(
        &self,
        pdf: &[u8],
        ticket: &TicketDocument,
        spaces: Spaces,
        which: impl Fn(&str) -> bool,
    ) {
        let (fields, cut) = (ticket.fields(), self.cut(ticket));
        let mut found = 0;
        for field in self.template.fields.iter().filter(|field| which(&field.name)) {
            let FieldKind::Text(text) = &field.kind else { continue };
            let (_, value) = fields.iter().find(|(name, _)| *name == field.name).unwrap();
            let read = readers::text_in(pdf, part_of(field, text));
            assert!(
                says(&read, value, spaces, cut.contains(&field.name)),
                "{}: {value:?} is read as {read:?} in {} (cut: {cut:?})",
                self.design.name,
                field.name
            );
            found += 1;
        }
        assert!(found > 0);
    }
}

/// A test for each design, for the readers take most of the time.
fn assert_read_in_every_script(design: &Design) {
    let designed = Designed::new(design);
    let spaces = NAMES.iter().map(|name| (name, Spaces::Count));
    for (name, spaces) in spaces.chain(HARD_NAMES.iter().map(|name| (name, Spaces::AreGuessed))) {
        let ticket = named(name);
        for (way, pdf) in designed.made(&ticket) {
            readers::check(&pdf);
            // What the code looks like does not depend on the name.
            if way == "stamped" || *name == NAMES[0] {
                assert_eq!(readers::scan_at(&pdf, 100), ticket.code, "{way} {}", design.name);
            }
            designed.assert_read(&pdf, &ticket, spaces, |field| field == "name");
        }
    }
    let [(_, stamped), _] = designed.made(&named(POINTED));
    designed.assert_read(&stamped, &named(POINTED), Spaces::Count, |field| field == "name");
}

#[test]
fn every_name_on_an_a4_ticket_is_read_in_every_script() {
    assert_read_in_every_script(&shipped()[0]);
}

#[test]
fn every_name_on_a_stub_is_read_in_every_script() {
    assert_read_in_every_script(&shipped()[1]);
}

#[test]
fn every_name_on_a_badge_is_read_in_every_script() {
    assert_read_in_every_script(&shipped()[2]);
}

#[test]
fn every_other_field_is_read_in_its_box() {
    for design in shipped() {
        let designed = Designed::new(design);
        let ticket = TicketDocument {
            seat: Some("الصف الثالث مقعد ١٤".into()), ..named("Zoë")
        };
        for (_, pdf) in designed.made(&ticket) {
            designed.assert_read(&pdf, &ticket, Spaces::AreGuessed, |_| true);
        }
    }
}

#[test]
fn a_letter_and_its_marks_are_read_once_wherever_they_stand() {
    let source = "#set text(lang: \"th\")\nผู้ใหญ่ ใจดี #qr(20mm)";
    let stamped = stamp_ticket(&published(source), &named("Zoë"));
    for pdf in [stamped, typeset_source(source, &named("Zoë")).unwrap()] {
        let text = readers::text(&pdf);
        assert_eq!(text.trim(), "ผู้ใหญ่ ใจดี");
    }
}
