//! Every text of the corpus in every variant and format keeps Telegram's limits.

use std::path::PathBuf;

use stampede_sticker::{
    Animation, Format, MAX_STATIC_BYTES, MAX_TGS_BYTES, Outline, SIDE, Shadow, Shape, Studio, Text,
    Variant, by_name, shipped,
};

use crate::corpus;

/// Texts that are played without the environment variable.
const SLICE: usize = 10;

fn texts() -> usize {
    std::env::var("STAMPEDE_STICKER_TEXTS").map_or(SLICE, |count| count.parse().unwrap())
}

/// The folder that keeps the files, if there is one.
fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("STAMPEDE_STICKER_FILES")?);
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

/// The shipped variants, and combinations that none of them has.
fn variants() -> Vec<(&'static str, Variant)> {
    let mut all: Vec<_> = shipped().iter().map(|shipped| (shipped.name, shipped.variant)).collect();
    let of = |name: &str| by_name(name).unwrap().variant;
    all.push((
        "still",
        Variant { animation: Animation::None, outline: Outline::None, ..of("sunset") },
    ));
    all.push(("typed-hard", Variant { animation: Animation::Type, ..of("comic") }));
    all.push((
        "shaken-bubble",
        Variant { animation: Animation::Shake, shadow: Shadow::Hard, ..of("bubble") },
    ));
    all.push((
        "beating-ribbon",
        Variant {
            animation: Animation::Pulse,
            shadow: Shadow::Glow,
            shape: Shape::Ribbon,
            ..of("mint")
        },
    ));
    all
}

#[test]
fn every_text_in_every_variant_keeps_the_limits() {
    let (studio, folder) = (Studio::new().unwrap(), folder());
    let keep = |name: &str, bytes: &[u8]| {
        if let Some(folder) = &folder {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    };
    let all = variants();
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (studio, keep, all) = (&studio, &keep, &all);
            scope.spawn(move || {
                for number in (thread..texts()).step_by(threads) {
                    let typed = corpus::text(number);
                    let text =
                        Text::new(&typed).unwrap_or_else(|error| panic!("{typed:?}: {error}"));
                    for (name, variant) in all {
                        let file = |format: Format| {
                            let bytes = studio
                                .draw(&text, variant, format)
                                .unwrap_or_else(|error| panic!("{typed:?} as {name}: {error}"));
                            keep(&format!("{number:04}-{name}.{}", format.extension()), &bytes);
                            bytes
                        };
                        check_still(&typed, &file(Format::Webp));
                        let tgs = file(Format::Tgs);
                        assert!(
                            tgs.starts_with(&[0x1F, 0x8B]) && tgs.len() <= MAX_TGS_BYTES,
                            "{typed:?} as {name}"
                        );
                        // Decoding a WEBP and a PNG of the same pixels would be the same test twice.
                        if number % 10 == 0 {
                            check_png(&typed, &file(Format::Png));
                        }
                    }
                }
            });
        }
    });
}

fn check_still(text: &str, bytes: &[u8]) {
    assert!(bytes.len() <= MAX_STATIC_BYTES, "{text:?}");
    let mut decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(bytes)).unwrap();
    let (width, height) = decoder.dimensions();
    assert!(decoder.has_alpha(), "{text:?}");
    let mut pixels = vec![0; decoder.output_buffer_size().unwrap()];
    decoder.read_image(&mut pixels).unwrap();
    check_pixels(text, width, height, &pixels);
}

fn check_png(text: &str, bytes: &[u8]) {
    assert!(bytes.len() <= MAX_STATIC_BYTES, "{text:?}");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgba);
    check_pixels(text, info.width, info.height, &pixels);
}

/// One side is 512, the other at most; something is seen, and nothing touches the border.
fn check_pixels(text: &str, width: u32, height: u32, pixels: &[u8]) {
    assert!(width.max(height) == SIDE && width.min(height) > 0, "{text:?} is {width} × {height}");
    let alpha = |x: u32, y: u32| pixels[(y * width + x) as usize * 4 + 3];
    assert!(pixels.chunks_exact(4).any(|pixel| pixel[3] == 255), "{text:?} is not seen");
    let on_border = (0..width).any(|x| alpha(x, 0) > 0 || alpha(x, height - 1) > 0)
        || (0..height).any(|y| alpha(0, y) > 0 || alpha(width - 1, y) > 0);
    assert!(!on_border, "{text:?} touches the border");
}

/// The texts of the pictures in `docs`, kept as `shown-…` (`interop/stickers/picture.py` puts them together).
#[test]
fn the_texts_of_the_documents_are_drawn() {
    let (studio, folder) = (Studio::new().unwrap(), folder());
    for (number, typed) in
        ["Good luck! 🍀", "С днём рождения, Алиса 🎂", "مرحبا بكم 👋🏽"].iter().enumerate()
    {
        let text = Text::new(typed).unwrap();
        for shipped in shipped() {
            for format in [Format::Webp, Format::Tgs] {
                let bytes = studio.draw(&text, &shipped.variant, format).unwrap();
                if let Some(folder) = &folder {
                    let name = format!(
                        "shown-{}-{number}-{}.{}",
                        shipped.index,
                        shipped.name,
                        format.extension()
                    );
                    std::fs::write(folder.join(name), bytes).unwrap();
                }
            }
        }
    }
}

#[test]
fn the_corpus_is_the_same_in_every_run_and_has_a_thousand_texts() {
    let all: Vec<String> = (0..1000).map(corpus::text).collect();
    assert_eq!(all, (0..1000).map(corpus::text).collect::<Vec<_>>());
    assert!(all.iter().all(|text| Text::new(text).is_ok()));
    let graphemes = |text: &String| {
        unicode_segmentation::UnicodeSegmentation::graphemes(text.as_str(), true).count()
    };
    assert!(
        all.iter().any(|text| graphemes(text) == 1) && all.iter().any(|text| graphemes(text) > 190)
    );
}
