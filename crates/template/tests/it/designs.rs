//! The shipped designs: stamped and typeset look the same, and readers read both.

use stampede_model::TicketDocument;
use stampede_template::{Bundle, Design, EventData, Published, compile, shipped, typeset};

use crate::{NAMES, named, readers, slow, stamp_ticket, stamped, ticket};

/// What a person cannot see. Poppler puts every letter on a whole pixel, so that one whose place is
/// between two may be on either, a 150th of an inch apart: a stem of it then differs. Seen were one letter
/// of a headline and one of a name (265 of 2.2 million pixels); edges of shapes differed by at most 38.
const MOST_DIFFERENT: f64 = 0.0002;
const VISIBLY: u8 = 64;
/// Over all pixels and colours, of 255.
const MEAN_DIFFERENCE: f64 = 0.03;

fn published(design: &Design) -> Published {
    compile(&design.bundle, &EventData::sample()).unwrap_or_else(|e| panic!("{e:#?}"))
}

fn assert_looks_the_same(what: &str, fast: &[u8], slow: &[u8]) {
    let (fast, slow) = (readers::picture(fast, 150), readers::picture(slow, 150));
    assert_eq!((fast.width, fast.height), (slow.width, slow.height), "{what}");
    let (mut visible, mut sum) = (0, 0);
    // Most of a page is the same: whole rows are compared first.
    let rows = fast.pixels.chunks(fast.width * 3).zip(slow.pixels.chunks(fast.width * 3));
    for (a, b) in rows.filter(|(a, b)| a != b) {
        for (a, b) in a.chunks(3).zip(b.chunks(3)).filter(|(a, b)| a != b) {
            let apart = [a[0].abs_diff(b[0]), a[1].abs_diff(b[1]), a[2].abs_diff(b[2])];
            visible += usize::from(apart.iter().any(|apart| *apart > VISIBLY));
            sum += apart.iter().map(|apart| u64::from(*apart)).sum::<u64>();
        }
    }
    let share = visible as f64 / (fast.width * fast.height) as f64;
    let mean = sum as f64 / fast.pixels.len() as f64;
    assert!(share <= MOST_DIFFERENT, "{what}: {visible} pixels differ, {share:.5} of all");
    assert!(mean <= MEAN_DIFFERENCE, "{what}: the mean difference is {mean:.3}");
}

fn compare(bundle: &Bundle, published: &Published, what: &str, ticket: &TicketDocument) {
    let slow = typeset(&slow(bundle), ticket).unwrap();
    assert_looks_the_same(what, &stamp_ticket(published, ticket), &slow);
}

/// A test for each design, for painting them takes most of the time.
fn compare_in_every_script(design: &Design) {
    let published = published(design);
    for name in NAMES {
        compare(&design.bundle, &published, &format!("{} {name}", design.name), &named(name));
    }
}

#[test]
fn stamped_and_typeset_a4_tickets_look_the_same_in_every_script() {
    compare_in_every_script(&shipped()[0]);
}

#[test]
fn stamped_and_typeset_stubs_look_the_same_in_every_script() {
    compare_in_every_script(&shipped()[1]);
}

#[test]
fn stamped_and_typeset_badges_look_the_same_in_every_script() {
    compare_in_every_script(&shipped()[2]);
}

#[test]
fn stamped_and_typeset_tickets_look_the_same_without_seat_and_price() {
    for design in shipped() {
        let mut ticket = ticket();
        ticket.price = None;
        let published = published(design);
        compare(&design.bundle, &published, design.name, &ticket);
        ticket.seat = None;
        compare(&design.bundle, &published, design.name, &ticket);
    }
}

#[test]
fn optional_labels_are_there_only_with_their_value() {
    let published = published(&shipped()[0]);
    let text = readers::text(&stamp_ticket(&published, &ticket()));
    assert!(text.contains("SEAT") && text.contains("PRICE"), "{text}");
    let without = TicketDocument { seat: None, ..ticket() };
    let text = readers::text(&stamp_ticket(&published, &without));
    assert!(!text.contains("SEAT") && text.contains("PRICE"), "{text}");
}

#[test]
fn the_designs_are_stamped_small_and_have_their_sizes() {
    let pages = |width_mm: f32, height_mm: f32| (width_mm / 25.4 * 72.0, height_mm / 25.4 * 72.0);
    let sizes = [pages(210.0, 297.0), pages(200.0, 80.0), pages(96.0, 134.0)];
    for (design, (width, height)) in shipped().iter().zip(sizes) {
        let published = published(design);
        assert_eq!(published.warnings, [], "{}", design.name);
        let [(w, h)] = published.pages[..] else { panic!("{:?}", published.pages) };
        assert!((w - width).abs() < 0.1 && (h - height).abs() < 0.1, "{w} × {h}");
        let size = stamped(&published).base.bytes.len();
        assert!(size <= 12_000, "{}: {size} bytes are shared", design.name);
    }
}

#[test]
fn any_brand_stays_legible_and_scannable() {
    for (primary, secondary) in [
        ("#000000", "#ffffff"),
        ("#ffffff", "#ffffff"),
        ("#000000", "#000000"),
        ("#ffee00", "#00ffee"),
    ] {
        for design in shipped() {
            let event = EventData {
                primary: primary.into(),
                secondary: secondary.into(),
                ..EventData::sample()
            };
            let published = compile(&design.bundle, &event).unwrap();
            let pdf = stamp_ticket(&published, &ticket());
            assert_eq!(readers::scan_at(&pdf, 100), ticket().code, "{primary} {secondary}");
        }
    }
}

#[test]
fn labels_speak_the_language_of_the_event() {
    for (lang, words) in [
        ("ru", "Место"),
        ("uk", "Місце"),
        ("de", "Platz"),
        ("fr", "Place"),
        ("es", "Asiento"),
        ("zh", "座位"),
        ("hi", "सीट"),
        ("th", "ที่นั่ง"),
        ("ar", "المقعد"),
        ("he", "מושב"),
    ] {
        let event = EventData { lang: lang.into(), ..EventData::sample() };
        for design in shipped() {
            let published = compile(&design.bundle, &event).unwrap();
            let pdf = stamp_ticket(&published, &ticket());
            // Poppler puts marks around words that run leftwards.
            let text = readers::unwrapped_text(&pdf).to_lowercase();
            let text = text.replace(['\u{202a}', '\u{202b}', '\u{202c}'], "");
            assert!(text.contains(&words.to_lowercase()), "{lang} {}: {text}", design.name);
        }
    }
}

#[test]
fn the_document_says_its_language_and_unknown_ones_are_warned_of() {
    let event = |lang: &str, region: Option<&str>| EventData {
        lang: lang.into(),
        region: region.map(str::to_owned),
        ..EventData::sample()
    };
    for design in shipped() {
        let published = compile(&design.bundle, &event("pt", Some("BR"))).unwrap();
        let [warning] = &published.warnings[..] else { panic!("{:?}", published.warnings) };
        assert!(warning.message.contains("no labels in the language \"pt\""), "{warning}");
        assert_eq!(stamped(&published).lang, "pt-BR");
        let text = readers::unwrapped_text(&stamp_ticket(&published, &ticket()));
        assert!(text.contains("SEAT"), "{text}");
        assert_eq!(compile(&design.bundle, &event("de", None)).unwrap().warnings, []);
    }
    let silent = Bundle::of_source("#qr(20mm) Olá").unwrap();
    assert_eq!(compile(&silent, &event("pt", None)).unwrap().warnings, []);
}

#[test]
fn an_event_without_place_and_time_has_tickets_too() {
    let event =
        EventData { location: String::new(), starts: None, starts_at: None, ..EventData::sample() };
    for design in shipped() {
        let published = compile(&design.bundle, &event).unwrap_or_else(|e| panic!("{e:#?}"));
        let pdf = stamp_ticket(&published, &ticket());
        assert!(readers::text(&pdf).contains("Hartmann"), "{}", design.name);
        assert!(!readers::text(&pdf).contains("LOCATION"));
    }
}
