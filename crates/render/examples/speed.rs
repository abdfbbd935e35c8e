//! How long a ticket takes: CPU time of one thread, five texts and a QR code of 41 × 41 modules.
//!
//! `cargo run --release -p stampede-render --example speed`

#![allow(clippy::print_stdout)]

use std::sync::Arc;

use stampede_render::compiled::{
    Align, Field, FieldKind, Fill, FontSource, ObjectPlace, Page, Stamped, StaticPdf, TextField,
};
use stampede_render::{Deflate, Prepared, Stamper, Values, fonts, qr};

const NAMES: [&str; 8] = [
    "Ann Example",
    "Анна Ёлкина",
    "Maximilian von Hohenzollern",
    "Ελένη Παπαδοπούλου",
    "José Muñoz Fernández",
    "محمد عبد الله",
    "Zoë Łukasiewicz",
    "王小明",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let template = Arc::new(Prepared::new(template())?);
    // `speed stamp [COUNT]` leaves the rest out, for a profiler.
    let only = std::env::args().nth(1);
    let count = std::env::args().nth(2).map_or(Ok(4000), |count| count.parse())?;
    let modes: &[Deflate] =
        if only.is_some() { &[Deflate::Off] } else { &[Deflate::Off, Deflate::On] };
    for &deflate in modes {
        let mut stamper = Stamper::new(Arc::clone(&template)).with_deflate(deflate);
        // Many short rounds: on a shared machine only the best of them tell what the code costs.
        let mut rounds =
            (0..60).map(|_| measure(&mut stamper, count / 10)).collect::<Result<Vec<_>, _>>()?;
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ((best, bytes), (median, _)) = (rounds[0], rounds[rounds.len() / 2]);
        println!(
            "deflate {deflate:?}: {best:.2} µs at best ({:.0} a second), median {median:.2} µs, {bytes} bytes",
            1e6 / best
        );
    }
    if only.is_some() {
        return Ok(());
    }
    let mut encoder = qr::Encoder::new();
    let mut symbol = qr::Symbol::empty();
    let tokens: Vec<String> = (0..400).map(token).collect();
    let mut best = f64::MAX;
    for _ in 0..60 {
        let start = cpu();
        for token in &tokens {
            encoder.encode_into(token, &mut symbol)?;
        }
        best = best.min((cpu() - start) / tokens.len() as f64);
    }
    println!("QR code alone: {best:.2} µs at best");
    Ok(())
}

fn measure(stamper: &mut Stamper, count: usize) -> Result<(f64, usize), stampede_render::Error> {
    let tickets: Vec<[String; 6]> = (0..count)
        .map(|serial| {
            [
                NAMES[serial % NAMES.len()].to_owned(),
                format!("Row {} Seat {}", serial % 40, serial % 23),
                format!("€{}.50", 20 + serial % 90),
                format!("{serial:06}"),
                "Balcony, left".to_owned(),
                token(serial),
            ]
        })
        .collect();
    let mut out = Vec::new();
    let mut bytes = 0;
    let start = cpu();
    for ticket in &tickets {
        let names = ["name", "seat", "price", "number", "area", "code"];
        let fields: [(&str, &str); 6] = std::array::from_fn(|at| (names[at], ticket[at].as_str()));
        stamper.stamp(&Values { id: &ticket[3], fields: &fields }, &mut out)?;
        bytes += out.len();
    }
    Ok(((cpu() - start) / count as f64, bytes / count))
}

/// As long as a token, and different for every ticket.
fn token(serial: usize) -> String {
    let mut state = serial as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[(state >> 59) as usize])
    };
    (0..149).map(|_| next()).collect()
}

/// CPU time of this thread in microseconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn template() -> Stamped {
    // Stands for background and headlines: as large as the static part of the A4 design.
    let filler = "0 0 m 595 842 l S\n".repeat(660);
    let mut bytes = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
    let at = bytes.len() as u32;
    bytes.extend_from_slice(format!("1 0 obj\n<</Length {}>>stream\n", filler.len()).as_bytes());
    bytes.extend_from_slice(filler.as_bytes());
    bytes.extend_from_slice(b"\nendstream\nendobj\n");
    let chain = [
        "Inter-SemiBold.ttf",
        "Inter-Regular.ttf",
        "Inter-ExtraBold.ttf",
        "NotoSansArabic-Bold.ttf",
        "NotoSansSC-Regular.ttf",
    ];
    let fonts = fonts::shipped();
    let fonts = chain
        .iter()
        .filter_map(|name| fonts.iter().find(|font| font.name == *name))
        .map(|font| FontSource::Shipped(font.sha256))
        .collect();
    let text = |name: &str, y: f32, size: f32, font: u32, align| Field {
        name: name.to_owned(),
        page: 0,
        transform: [1.0, 0.0, 0.0, 1.0, 60.0, y],
        kind: FieldKind::Text(TextField {
            width: 300.0,
            size,
            min_size: size * 0.6,
            lines: 1,
            line_height: 1.2,
            align,
            upper: false,
            tracking: 0.0,
            features: Vec::new(),
            lang: String::new(),
            fonts: vec![font, 3, 4],
            fill: Fill::Solid([0.1, 0.1, 0.2], 1.0),
        }),
    };
    Stamped {
        lang: "en".to_owned(),
        title: "Ticket {number}: {name}".to_owned(),
        base: StaticPdf { bytes, objects: vec![ObjectPlace::At(at)] },
        pages: vec![Page {
            width: 595.0,
            height: 842.0,
            content: 1,
            resources: String::new(),
            fonts: String::new(),
            entries: String::new(),
        }],
        fonts,
        fields: vec![
            text("name", 200.0, 18.0, 0, Align::Start),
            text("seat", 240.0, 18.0, 0, Align::Left),
            text("price", 280.0, 18.0, 0, Align::Right),
            text("number", 320.0, 11.0, 1, Align::Center),
            text("area", 360.0, 11.0, 1, Align::Left),
            Field {
                name: "code".to_owned(),
                page: 0,
                transform: [1.0, 0.0, 0.0, 1.0, 400.0, 400.0],
                kind: FieldKind::Qr { side: 120.0, fill: [0.0; 3], background: None },
            },
        ],
    }
}
