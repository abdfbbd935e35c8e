//! The shipped designs: stamped and typeset look the same, and readers read both.

use stampede_model::TicketDocument;
use stampede_template::{Bundle, Design, EventData, Published, compile, shipped, typeset};

use crate::{readers, slow, stamp_ticket, stamped, ticket};

/// Names in every script a ticket can be printed in, very short and very long ones.
const NAMES: &[&str] = &[
    "Amelia Hartmann",
    "Ян Ли",
    "Мария-Антуанетта Белосельская-Белозерская",
    "Άννα Παπαδοπούλου",
    "محمد عبد الله الهاشمي",
    "יוסי כהן",
    "अमिताभ बच्चन",
    "สมชาย ใจดี",
    "王小明",
    "김민준",
    "Zoë 🎉 O’Brien",
    "Li",
    "Maximiliane Featherstonehaugh-Cholmondeley von und zu Hohenlohe-Waldenburg-Schillingsfürst, the Third of That Name",
    "Wolfeschlegelsteinhausenbergerdorffwelchevoralternwarengewissenhaft",
];

/// What a person cannot see: at 150 dpi, no more than this part of the pixels may differ by a quarter of
/// the range (letters moved by part of a pixel), and none of it anywhere else.
const MOST_DIFFERENT: f64 = 0.003;
const VISIBLY: u8 = 64;

fn published(design: &Design) -> Published {
    compile(&design.bundle, &EventData::sample()).unwrap_or_else(|e| panic!("{e:#?}"))
}

fn named(name: &str) -> TicketDocument {
    TicketDocument { name: name.into(), ..EventData::sample().sample_ticket() }
}

fn assert_looks_the_same(what: &str, fast: &[u8], slow: &[u8]) {
    let (fast, slow) = (readers::picture(fast, 150), readers::picture(slow, 150));
    assert_eq!((fast.width, fast.height), (slow.width, slow.height), "{what}");
    let pairs = fast.pixels.chunks(3).zip(slow.pixels.chunks(3));
    let visible =
        pairs.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > VISIBLY)).count();
    let share = visible as f64 / (fast.width * fast.height) as f64;
    assert!(share <= MOST_DIFFERENT, "{what}: {visible} pixels differ, {share:.5} of all");
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
fn every_design_is_a_sound_pdf_whose_texts_and_code_are_read_in_every_script() {
    for design in shipped() {
        let published = published(design);
        for name in NAMES.iter().take(12) {
            let ticket = named(name);
            let pdf = stamp_ticket(&published, &ticket);
            readers::check(&pdf);
            // Lines are wrapped in words, too; words that run leftwards come in the order of the page.
            let drawn = readers::unwrapped_text(&pdf);
            let text = readers::unmarked_text(&pdf);
            let letters: String = name.split_whitespace().collect();
            let whole =
                drawn.contains(&letters) || name.split_whitespace().all(|word| text.contains(word));
            assert!(whole, "{} {name}: {text}", design.name);
            assert_eq!(readers::scan_at(&pdf, 100), ticket.code, "{} {name}", design.name);
        }
    }
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
    for (lang, words) in
        [("ru", "Место"), ("de", "Platz"), ("zh", "座位"), ("hi", "सीट"), ("th", "ราคา")]
    {
        let event = EventData { lang: lang.into(), ..EventData::sample() };
        for design in shipped() {
            let published = compile(&design.bundle, &event).unwrap();
            let pdf = stamp_ticket(&published, &ticket());
            let text = readers::unwrapped_text(&pdf).to_lowercase();
            let words = if design.name == "badge" && lang == "th" {
                "ผู้เข้าร่วม"
            } else {
                words
            };
            assert!(text.contains(&words.to_lowercase()), "{lang} {}: {text}", design.name);
        }
    }
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
