//! A short run of the fuzz targets' entries on mutated input, the same in every run.

#[path = "../../../../fuzz/entries/blob.rs"]
mod blob;
#[path = "../../../../fuzz/entries/stamp.rs"]
mod stamp;

use stampede_render::compiled::{Compiled, FieldKind};
use stampede_render::encode;

use crate::sample::{TOKEN, field, template, text};
use crate::stamping::NAMES;

/// Changes some bytes, or puts pieces of other inputs in.
fn mutate(random: &mut fastrand::Rng, input: &mut Vec<u8>, others: &[Vec<u8>]) {
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..=input.len());
        match random.u8(..5) {
            0 if at < input.len() => input[at] = random.u8(..),
            1 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            2 => input.truncate(at),
            3 => input.insert(at, random.u8(..)),
            _ => {
                let other = &others[random.usize(..others.len())];
                let start = random.usize(..=other.len());
                let end = random.usize(start..=other.len().min(start + 40));
                input.splice(at..at, other[start..end].iter().copied());
            }
        }
    }
}

fn drive(seeds: &[Vec<u8>], rounds: usize, entry: fn(&[u8])) {
    let mut random = fastrand::Rng::with_seed(20_261_116);
    for seed in seeds {
        entry(seed);
    }
    for _ in 0..rounds {
        let mut input = seeds[random.usize(..seeds.len())].clone();
        mutate(&mut random, &mut input, seeds);
        entry(&input);
    }
}

#[test]
fn mutated_values_are_stamped() {
    let mut seeds: Vec<Vec<u8>> = NAMES.iter().map(|(_, name)| name.as_bytes().to_vec()).collect();
    let more =
        ["\u{202E}\u{2066}\u{200D}\u{301}\u{1F1E6}", "a\0\n\t\u{FEFF}", "ﷺ ꦲ \u{10FFFF}", ""];
    seeds.extend(more.map(|value| value.as_bytes().to_vec()));
    drive(&seeds, 150, stamp::run);
}

#[test]
fn mutated_blobs_do_no_harm() {
    let code = FieldKind::Qr { side: 90.0, fill: [0.0; 3], background: None };
    let mut template = template(vec![
        field("name", 20.0, 60.0, FieldKind::Text(text(200.0, 20.0))),
        field("code", 20.0, 90.0, code),
    ]);
    template.fonts.truncate(2);
    if let FieldKind::Text(text) = &mut template.fields[0].kind {
        text.fonts = vec![0, 1];
    }
    let blob = encode(&Compiled::Stamped(Box::new(template)));
    let seeds = [blob[38..].to_vec(), blob, TOKEN.as_bytes().to_vec()];
    drive(&seeds, 1500, blob::run);
}
