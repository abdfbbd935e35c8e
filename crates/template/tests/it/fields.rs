//! What templates can do with fields, and what becomes of it.

use std::collections::BTreeMap;

use stampede_model::TicketDocument;
use stampede_render::blob;
use stampede_render::compiled::{Align, Compiled, FieldKind, Fill};
use stampede_template::{Bundle, Diagnostic, EventData, compile, typeset, typeset_compiled};

use crate::{published, readers, slow, stamp_ticket, stamped, ticket};

fn mistakes(source: &str) -> Vec<Diagnostic> {
    compile(&Bundle::of_source(source).unwrap(), &EventData::sample()).unwrap_err()
}

fn slow_because(source: &str) -> String {
    published(source).slow_because.unwrap_or_else(|| panic!("it is stamped: {source}"))
}

#[test]
fn an_unknown_field_is_an_error_with_its_place_and_a_hint() {
    let mistakes = mistakes("Hello\n\n  #field(\"nmae\")");
    let [mistake] = &mistakes[..] else { panic!("{mistakes:?}") };
    assert_eq!(
        mistake.to_string(),
        "template.typ:3:4: unknown field: nmae (hint: did you mean \"name\"?) (hint: a ticket has \
         id, code, index, number, name, seat, price, event, location, starts)"
    );
}

#[test]
fn mistakes_are_where_the_organiser_made_them() {
    let place = |source: &str| {
        let all = mistakes(source);
        (all[0].file.clone().unwrap_or_default(), all[0].line.unwrap(), all[0].column.unwrap())
    };
    assert_eq!(place("#qr(\"large\")"), ("template.typ".into(), 1, 2));
    assert_eq!(place("a\n#x-y"), ("template.typ".into(), 2, 2));
    assert_eq!(place("a\n b #field(\"name\", lines: 99)"), ("template.typ".into(), 2, 5));
    assert_eq!(place("#image(\"logo.png\")"), ("template.typ".into(), 1, 8));
    assert_eq!(place("#label(\"sead\")"), ("template.typ".into(), 1, 2));
}

#[test]
fn a_field_has_the_style_of_the_text_around_it() {
    let published = published(
        "#set page(width: 100mm, height: 50mm, margin: 10mm)\n#set text(size: 20pt, weight: 800, \
         fill: rgb(\"#ff0000\"), tracking: 1pt, lang: \"de\", number-width: \"tabular\")\n\
         #qr(20mm)#place(top + left, field(\"name\", width: 50mm, align: center, min: 50%, lines: 2, upper: true))",
    );
    let stamped = stamped(&published);
    let [_, field] = &stamped.fields[..] else { panic!("{:?}", stamped.fields) };
    let FieldKind::Text(text) = &field.kind else { panic!("{field:?}") };
    assert_eq!((text.size, text.min_size, text.lines), (20.0, 10.0, 2));
    assert_eq!((text.align, text.upper, text.lang.as_str()), (Align::Center, true, "de"));
    assert!((text.width - 50.0 / 25.4 * 72.0).abs() < 0.01 && (text.tracking - 0.05).abs() < 1e-6);
    assert_eq!(text.features, [(*b"tnum", 1)]);
    assert_eq!(text.fill, Fill::Solid([1.0, 0.0, 0.0], 1.0));
    assert!(text.line_height > 1.0 && text.line_height < 2.0, "{}", text.line_height);
    assert!(text.fonts.len() >= 10, "all shipped families stand in: {:?}", text.fonts);
}

#[test]
fn a_field_can_be_used_twice_turned_and_on_several_pages() {
    let published = published(
        "#set page(width: 80mm, height: 200mm, margin: 5mm)\n#qr(30mm)\n#field(\"name\")\n\n\
         #rotate(-90deg, reflow: true, box(width: 50mm, field(\"name\")))\n#pagebreak()\n\
         Terms #scale(50%, reflow: true)[#box(width: 40mm, field(\"id\"))]",
    );
    assert_eq!(published.pages.len(), 2);
    let stamped = stamped(&published);
    let [_, plain, turned, small] = &stamped.fields[..] else { panic!("{:?}", stamped.fields) };
    assert_eq!(plain.transform[..4], [1.0, 0.0, 0.0, 1.0]);
    assert!(turned.transform[0].abs() < 1e-6 && (turned.transform[1] + 1.0).abs() < 1e-6);
    assert_eq!((small.page, small.transform[0]), (1, 0.5));
    let pdf = stamp_ticket(&published, &ticket());
    readers::check(&pdf);
    assert_eq!(readers::unwrapped_text(&pdf).matches("AmeliaHartmann").count(), 2);
}

#[test]
fn gradients_become_patterns_and_look_the_same() {
    for fill in
        ["gradient.linear(red, blue)", "gradient.radial(..color.map.viridis, relative: \"parent\")"]
    {
        let source = format!(
            "#set page(width: 100mm, height: 60mm, margin: 5mm)\n#qr(20mm)\n#set text(size: 40pt, weight: 800, fill: {fill})\n\
             #field(\"name\")"
        );
        let bundle = Bundle::of_source(&source).unwrap();
        let published = published(&source);
        let fast = readers::picture(&stamp_ticket(&published, &ticket()), 100);
        let slow = readers::picture(&typeset(&slow(&bundle), &ticket()).unwrap(), 100);
        let far =
            fast.pixels.iter().zip(&slow.pixels).filter(|(a, b)| a.abs_diff(**b) > 64).count();
        assert!(far < 300, "{fill}: {far} of {}", fast.pixels.len());
    }
}

#[test]
fn an_image_is_chosen_by_a_value() {
    let square = |colour: &str| {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10 10\"><path fill=\"{colour}\" d=\"M0 0h10v10H0z\"/></svg>").into_bytes()
    };
    let source = "#set page(width: 60mm, height: 40mm, margin: 5mm)\n#image-field(\"seat\", 20mm, 20mm, \
                  choices: (\"VIP\": \"red.svg\"), default: \"blue.svg\")";
    let files = BTreeMap::from([
        ("template.typ".to_owned(), source.as_bytes().to_vec()),
        ("red.svg".to_owned(), square("#ff0000")),
        ("blue.svg".to_owned(), square("#0000ff")),
    ]);
    let bundle = Bundle::new(files).unwrap();
    let published = compile(&bundle, &EventData::sample()).unwrap();
    for (seat, colour) in [(Some("VIP"), [255, 0, 0]), (Some("A-1"), [0, 0, 255]), (None, [255; 3])]
    {
        let ticket = TicketDocument { seat: seat.map(str::to_owned), ..ticket() };
        for pdf in [stamp_ticket(&published, &ticket), typeset(&slow(&bundle), &ticket).unwrap()] {
            let picture = readers::picture(&pdf, 72);
            let middle = (picture.width * 42 + 42) * 3;
            assert_eq!(picture.pixels[middle..middle + 3], colour, "{seat:?}");
        }
    }
}

#[test]
fn templates_that_look_at_the_ticket_are_typeset_and_say_where() {
    assert_eq!(
        slow_because("Hi\n#if ticket(\"seat\") != none [seated]"),
        "template.typ:2:5: reads ticket"
    );
    assert_eq!(slow_because("#json(\"ticket.json\").name"), "template.typ:1:8: reads ticket.json");
    assert_eq!(slow_because("a #image(\"qr.svg\")"), "template.typ:1:11: reads qr.svg");
}

#[test]
fn what_a_stamper_cannot_draw_is_typeset_with_a_reason() {
    for (source, reason) in [
        ("#underline(field(\"name\"))", "decorated"),
        ("#box(width: 5mm, height: 5mm, clip: true, box(width: 50mm, field(\"name\")))", "cut off"),
        ("#set text(stroke: 1pt + red)\n#field(\"name\")", "outlined"),
        ("#set text(fill: gradient.conic(red, blue))\n#field(\"name\")", "conic"),
        (
            "#set text(fill: tiling(size: (5pt, 5pt), square(size: 3pt)))\n#field(\"name\")",
            "tiling",
        ),
        ("#field(\"name\")#place(top, rect(width: 100%, height: 20mm, fill: red))", "painted over"),
        ("#only-with(\"seat\", field(\"name\"))", "another value"),
    ] {
        let because = slow_because(source);
        assert!(because.contains(reason), "{source}: {because}");
    }
}

#[test]
fn a_clip_that_cuts_nothing_is_no_reason() {
    let source = "#qr(20mm)#block(width: 80mm, height: 20mm, clip: true, radius: 3mm, inset: 5mm, field(\"name\"))";
    assert_eq!(published(source).slow_because, None);
}

#[test]
fn a_mistake_that_shows_only_with_a_ticket_is_told_when_publishing() {
    let all = mistakes("#let price = float(ticket(\"price\"))\n#price");
    assert_eq!((all[0].file.as_deref(), all[0].line), (Some("template.typ"), Some(1)));
}

#[test]
fn a_template_of_old_goes_on_working() {
    let source = "#let t = json(\"ticket.json\")\n#set page(width: 80mm, height: 80mm)\n#t.name #t.event #t.primary\n#image(\"qr.svg\", width: 30mm)";
    let published = published(source);
    let Compiled::Typeset(template) = blob::decode(&published.blob).unwrap() else {
        panic!("it is stamped")
    };
    let pdf = typeset(&template, &ticket()).unwrap();
    assert!(readers::text(&pdf).contains("Amelia Hartmann"));
    assert_eq!(readers::scan_at(&pdf, 150), ticket().code);
    let alone = typeset_compiled(&template, &ticket()).unwrap();
    assert_eq!((alone.fields.len(), alone.pages.len()), (0, 1));
    assert!(alone.title.contains("Amelia Hartmann"), "{}", alone.title);
}

#[test]
fn a_template_without_a_code_is_warned_of() {
    let warnings = published("#field(\"name\")").warnings;
    assert!(warnings.iter().any(|warning| warning.message.contains("no code")), "{warnings:?}");
}

#[test]
fn links_to_the_web_stay_and_others_are_dropped() {
    let published = published(
        "#qr(20mm) #link(\"https://example.com/terms\")[Terms] = Top <top>\n#link(<top>)[up]",
    );
    let pdf = stamp_ticket(&published, &ticket());
    readers::check(&pdf);
    let pages = stamped(&published).pages;
    assert!(pages[0].entries.contains("/Annots["), "{:?}", pages[0].entries);
}

/// A table of names in which `Inter` is `Wavyy`.
fn renamed(mut table: Vec<u8>) -> Vec<u8> {
    for at in 0..table.len() - 10 {
        if table[at..at + 10] == *b"\0I\0n\0t\0e\0r" {
            table[at..at + 10].copy_from_slice(b"\0W\0a\0v\0y\0y");
        }
    }
    table
}

/// A font that says it can be varied in weight, under a name of its own.
fn variable_font() -> Vec<u8> {
    let font = stampede_render::fonts::shipped()[0].bytes;
    let word = |at: usize| u32::from_be_bytes(font[at..at + 4].try_into().unwrap());
    let count = usize::from(u16::from_be_bytes(font[4..6].try_into().unwrap()));
    let entries = (0..count).map(|index| 12 + 16 * index);
    let mut tables: Vec<(Vec<u8>, Vec<u8>)> = entries
        .map(|at| {
            let (start, length) = (word(at + 8) as usize, word(at + 12) as usize);
            let table = font[start..start + length].to_vec();
            (
                font[at..at + 4].to_vec(),
                if &font[at..at + 4] == b"name" { renamed(table) } else { table },
            )
        })
        .collect();
    let mut fvar = vec![0, 1, 0, 0, 0, 16, 0, 2, 0, 1, 0, 20, 0, 0, 0, 8];
    fvar.extend(b"wght");
    for value in [400_u32, 400, 900] {
        fvar.extend((value << 16).to_be_bytes());
    }
    fvar.extend([0, 0, 1, 0]);
    tables.push((b"fvar".to_vec(), fvar));
    tables.sort();
    let mut file = vec![0, 1, 0, 0];
    file.extend((tables.len() as u16).to_be_bytes());
    file.extend([0; 6]);
    let mut start = 12 + 16 * tables.len();
    for (tag, bytes) in &tables {
        file.extend(tag);
        file.extend([0; 4]);
        file.extend((start as u32).to_be_bytes());
        file.extend((bytes.len() as u32).to_be_bytes());
        start += bytes.len().next_multiple_of(4);
    }
    for (_, bytes) in &tables {
        file.extend(bytes);
        file.resize(file.len().next_multiple_of(4), 0);
    }
    file
}

#[test]
fn a_field_in_a_variable_font_is_typeset_and_the_file_is_named() {
    let with = |source: &str| {
        let files = BTreeMap::from([
            ("template.typ".to_owned(), source.as_bytes().to_vec()),
            ("fonts/wavy.ttf".to_owned(), variable_font()),
        ]);
        compile(&Bundle::new(files).unwrap(), &EventData::sample()).unwrap()
    };
    let published = with("#qr(20mm) #set text(font: \"Wavyy\")\n#field(\"name\")");
    let because = published.slow_because.unwrap();
    assert!(because.contains("variable font fonts/wavy.ttf"), "{because}");
    assert!(published.warnings.iter().any(|warning| warning.message.contains("fonts/wavy.ttf")));
    // Texts that are the same on every ticket are no obstacle: Typst sets them.
    let fixed = with("#qr(20mm) #field(\"name\")\n#text(font: \"Wavyy\")[Welcome]");
    assert_eq!(fixed.slow_because, None);
}
