//! Fonts written table by table: as small as a test wants them, and as hostile.
//!
//! The glyphs from number 1 on stand for the characters from `A` on. The family is called `Made Up`.

/// A glyph of a TrueType font.
#[derive(Debug, Clone)]
pub enum Part {
    /// An outline of its own.
    Outline(Vec<u8>),
    /// Nothing but other glyphs.
    Composite(Vec<u16>),
}

/// A small square.
pub fn square() -> Part {
    Part::Outline(outline_of(34))
}

/// A glyph of these glyphs.
pub fn composite(of: &[u16]) -> Part {
    Part::Composite(of.to_vec())
}

/// An outline of exactly so many bytes: as many points as fit, up to 50,000, and zeros behind them.
pub fn outline_of(bytes: usize) -> Vec<u8> {
    let points = ((bytes - 14) / 5).min(50_000);
    let mut outline = vec![0, 1, 0, 0, 0, 0, 3, 0, 3, 0];
    outline.extend_from_slice(&(points as u16 - 1).to_be_bytes());
    outline.extend_from_slice(&[0, 0]);
    // On the curve, with two bytes for x and for y.
    outline.resize(outline.len() + points, 1);
    let steps = (0..points).map(|point| [0, 255, 0, 1][point % 4]);
    for step in steps.clone().chain(steps.map(|step: u8| step.wrapping_mul(3))) {
        outline.extend_from_slice(&[0, step]);
    }
    outline.resize(bytes, 0);
    outline
}

/// A TrueType font of these glyphs; the first is `.notdef`.
pub fn truetype(parts: &[Part]) -> Vec<u8> {
    let mut glyf = Vec::new();
    let mut places = vec![0];
    for part in parts {
        match part {
            Part::Outline(bytes) => glyf.extend_from_slice(bytes),
            Part::Composite(of) => glyf.extend(components(of)),
        }
        places.push(glyf.len());
    }
    with_glyphs(glyf, &places)
}

/// A TrueType font whose `A` has so many components, and all of them are the same bytes of the file: a ticket that
/// shows `A` embeds each of them.
pub fn overlapping(outline: usize, components_of_a: u16) -> Vec<u8> {
    // A glyph reaches from its place to that of the next, so each copy is followed by a glyph that ends before it
    // begins, which counts as empty.
    let numbers: Vec<u16> = (0..components_of_a).map(|copy| 3 + 2 * copy).collect();
    // Four points, and zeros that no reader looks at.
    let mut glyf = outline_of(34);
    glyf.resize(outline, 0);
    glyf.extend(components(&numbers));
    let mut places = vec![0, outline, glyf.len()];
    for _ in &numbers {
        places.extend([0, outline]);
    }
    with_glyphs(glyf, &places)
}

fn with_glyphs(glyf: Vec<u8>, places: &[usize]) -> Vec<u8> {
    let glyphs = places.len() - 1;
    let loca = places.iter().flat_map(|place| (*place as u32).to_be_bytes()).collect();
    let tables = [
        (*b"cmap", cmap(glyphs)),
        (*b"glyf", glyf),
        (*b"head", head()),
        (*b"hhea", hhea(glyphs)),
        (*b"hmtx", hmtx(glyphs)),
        (*b"loca", loca),
        (*b"maxp", [&[0, 1, 0, 0][..], &(glyphs as u16).to_be_bytes(), &[0; 26]].concat()),
        (*b"name", name()),
    ];
    file([0, 1, 0, 0], &tables)
}

/// An OpenType font with a CFF glyph for `A` that calls subroutines: `levels` of them, one in the other, each
/// calling the next `calls` times.
pub fn cff_font(levels: usize, calls: usize) -> Vec<u8> {
    let subroutine = |level: usize| {
        // Small numbers are one byte; a subroutine is called by its number less 107.
        let call = [(level + 1 + 32) as u8, 29];
        let line = [139 + 10, 139, 5];
        let body = if level + 1 < levels { call.repeat(calls) } else { line.to_vec() };
        [body, vec![11]].concat()
    };
    let subroutines: Vec<Vec<u8>> = (0..levels).map(subroutine).collect();
    let glyphs = [vec![14], vec![139, 139, 21, 32, 29, 14]];
    let offset = |number: usize| [&[29][..], &(number as u32).to_be_bytes()].concat();
    let rest = [index(&[]), index(&subroutines)].concat();
    let names = index(&[b"MadeUp".to_vec()]);
    // An index of one dictionary of 17 bytes has 5 bytes before it.
    let glyphs_at = 4 + names.len() + 5 + 17 + rest.len();
    let private_at = glyphs_at + index(&glyphs).len();
    let top = [offset(glyphs_at), vec![17], offset(0), offset(private_at), vec![18]].concat();
    let cff = [vec![1, 0, 4, 1], names, index(&[top]), rest, index(&glyphs)].concat();
    let tables = [
        (*b"CFF ", cff),
        (*b"cmap", cmap(2)),
        (*b"head", head()),
        (*b"hhea", hhea(2)),
        (*b"hmtx", hmtx(2)),
        (*b"maxp", vec![0, 0, 0x50, 0, 0, 2]),
        (*b"name", name()),
    ];
    file(*b"OTTO", &tables)
}

fn components(of: &[u16]) -> Vec<u8> {
    let mut glyph = vec![255, 255, 0, 0, 0, 0, 3, 0, 3, 0];
    for (index, part) in of.iter().enumerate() {
        // Two words of offsets; more components follow all but the last.
        glyph.extend_from_slice(&[0, if index + 1 < of.len() { 0x23 } else { 0x03 }]);
        glyph.extend_from_slice(&part.to_be_bytes());
        glyph.extend_from_slice(&[0; 4]);
    }
    glyph
}

fn head() -> Vec<u8> {
    let mut head = vec![0; 54];
    head[1] = 1;
    head[12..16].copy_from_slice(&[0x5F, 0x0F, 0x3C, 0xF5]);
    head[18..20].copy_from_slice(&1_000_u16.to_be_bytes());
    head[40..44].copy_from_slice(&[3, 0, 3, 0]);
    // Long offsets.
    head[51] = 1;
    head
}

fn hhea(glyphs: usize) -> Vec<u8> {
    let mut hhea = vec![0; 36];
    hhea[1] = 1;
    hhea[4..8].copy_from_slice(&[3, 32, 255, 56]);
    hhea[34..36].copy_from_slice(&(glyphs as u16).to_be_bytes());
    hhea
}

fn hmtx(glyphs: usize) -> Vec<u8> {
    [2, 88, 0, 0].repeat(glyphs)
}

/// Format 12, one group: characters from `A` on are the glyphs from 1 on.
fn cmap(glyphs: usize) -> Vec<u8> {
    let mut cmap = vec![0, 0, 0, 1, 0, 3, 0, 10, 0, 0, 0, 12, 0, 12, 0, 0];
    let last = 0x41 + glyphs.saturating_sub(2) as u32;
    for number in [28, 0, 1, 0x41, last, 1] {
        cmap.extend_from_slice(&u32::to_be_bytes(number));
    }
    cmap
}

fn name() -> Vec<u8> {
    let text: Vec<u8> = "Made Up".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let mut name = vec![0, 0, 0, 2, 0, 6 + 2 * 12];
    for id in [1, 6] {
        for word in [3, 1, 0x409, id, text.len() as u16, 0] {
            name.extend_from_slice(&u16::to_be_bytes(word));
        }
    }
    [name, text].concat()
}

/// A CFF index with offsets of four bytes.
fn index(items: &[Vec<u8>]) -> Vec<u8> {
    let mut index = (items.len() as u16).to_be_bytes().to_vec();
    if items.is_empty() {
        return index;
    }
    // One byte for offsets of short lists, as the top dictionary's place is counted with.
    let bytes: usize = items.iter().map(Vec::len).sum();
    let width = if bytes < 255 { 1 } else { 4 };
    index.push(width);
    let mut at = 1_u32;
    let ends = items.iter().map(|item| item.len() as u32);
    for step in [0].into_iter().chain(ends) {
        at += step;
        index.extend_from_slice(&at.to_be_bytes()[4 - usize::from(width)..]);
    }
    index.extend(items.concat());
    index
}

fn file(kind: [u8; 4], tables: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut file = kind.to_vec();
    file.extend_from_slice(&(tables.len() as u16).to_be_bytes());
    file.extend_from_slice(&[0, 128, 0, 3, 0, 0]);
    let mut at = 12 + tables.len() * 16;
    for (tag, table) in tables {
        file.extend_from_slice(tag);
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(&(at as u32).to_be_bytes());
        file.extend_from_slice(&(table.len() as u32).to_be_bytes());
        at += table.len().next_multiple_of(4);
    }
    for (_, table) in tables {
        file.extend_from_slice(table);
        file.resize(file.len().next_multiple_of(4), 0);
    }
    file
}
