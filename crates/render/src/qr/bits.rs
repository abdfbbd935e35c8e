//! From a text to the codewords of a symbol: modes, padding, Reed-Solomon, interleaving.

/// Error-correction codewords of each block at level M, by version.
const ECC_PER_BLOCK: [usize; 11] = [0, 10, 16, 26, 18, 24, 16, 18, 22, 22, 26];
/// Blocks at level M, by version.
const BLOCKS: [usize; 11] = [0, 1, 1, 1, 2, 2, 4, 4, 4, 5, 5];
/// More than version 10 has in all (346).
const CAPACITY: usize = 352;

/// Value of each character in alphanumeric mode; 255 for those that have none.
static ALPHANUMERIC: [u8; 256] = {
    let mut table = [255; 256];
    let alphabet = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";
    let mut value = 0;
    while value < alphabet.len() {
        table[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    table
};

/// Whether alphanumeric mode can hold all of `text`.
pub(super) fn is_alphanumeric(text: &[u8]) -> bool {
    text.iter().all(|&byte| ALPHANUMERIC[usize::from(byte)] != 255)
}

/// What turns texts into codewords for one version.
pub(super) struct Codewords {
    version: usize,
    data: usize,
    ecc: usize,
    blocks: usize,
    /// For every leading byte, what it adds to the remainder.
    steps: Vec<Remainder>,
}

impl Codewords {
    pub(super) fn new(version: usize) -> Self {
        let (ecc, blocks) = (ECC_PER_BLOCK[version], BLOCKS[version]);
        let generator = generator(ecc);
        let steps = (0..=255)
            .map(|lead| {
                let mut step = [0; 32];
                for (sum, &factor) in step.iter_mut().zip(&generator) {
                    *sum = multiply(lead, factor);
                }
                Remainder::from_bytes(step)
            })
            .collect();
        Self { version, data: data_codewords(version), ecc, blocks, steps }
    }

    /// Whether a text of this length and kind fits a symbol of this version at level M.
    pub(super) fn fits(length: usize, alphanumeric: bool, version: usize) -> bool {
        // No symbol up to version 10 holds more; also keeps the sums small.
        if length > 512 {
            return false;
        }
        let bits = if alphanumeric { length / 2 * 11 + length % 2 * 6 } else { length * 8 };
        4 + count_bits(version, alphanumeric) + bits <= data_codewords(version) * 8
    }

    /// How many codewords [`Self::encode`] makes.
    pub(super) fn total(&self) -> usize {
        self.data + self.ecc * self.blocks
    }

    /// All codewords in the order in which they are drawn. `text` fits.
    pub(super) fn encode(&self, text: &[u8]) -> [u8; CAPACITY] {
        let data = self.data_of(text);
        let mut drawn = [0; CAPACITY];
        let short = self.data / self.blocks;
        let first_long = self.blocks - self.data % self.blocks;
        let mut start = 0;
        for block in 0..self.blocks {
            let length = short + usize::from(block >= first_long);
            let mut remainder = Remainder::default();
            for (index, &byte) in data[start..start + length].iter().enumerate() {
                let place = if index < short {
                    index * self.blocks + block
                } else {
                    short * self.blocks + block - first_long
                };
                drawn[place] = byte;
                let lead = byte ^ (remainder.first >> 120) as u8;
                remainder = remainder.next(&self.steps[usize::from(lead)]);
            }
            for (index, byte) in remainder.to_bytes().into_iter().take(self.ecc).enumerate() {
                drawn[self.data + index * self.blocks + block] = byte;
            }
            start += length;
        }
        drawn
    }

    fn data_of(&self, text: &[u8]) -> [u8; CAPACITY] {
        let mut bits = Bits { bytes: [0; CAPACITY], used: 0 };
        let alphanumeric = is_alphanumeric(text);
        bits.push(if alphanumeric { 2 } else { 4 }, 4);
        bits.push(text.len() as u32, count_bits(self.version, alphanumeric));
        if alphanumeric {
            let value = |byte: u8| u32::from(ALPHANUMERIC[usize::from(byte)]);
            let mut pairs = text.chunks_exact(2);
            for pair in &mut pairs {
                bits.push(value(pair[0]) * 45 + value(pair[1]), 11);
            }
            if let [last] = pairs.remainder() {
                bits.push(value(*last), 6);
            }
        } else {
            for &byte in text {
                bits.push(u32::from(byte), 8);
            }
        }
        // The terminator is zeros, which are there already.
        let end = (bits.used + 4).min(self.data * 8).div_ceil(8);
        for (index, byte) in bits.bytes[end..self.data].iter_mut().enumerate() {
            *byte = if index % 2 == 0 { 0xEC } else { 0x11 };
        }
        bits.bytes
    }
}

/// 32 bytes of a remainder, the highest coefficient first, in two words.
#[derive(Clone, Copy, Default)]
struct Remainder {
    first: u128,
    second: u128,
}

impl Remainder {
    fn from_bytes(bytes: [u8; 32]) -> Self {
        let mut halves = [[0; 16]; 2];
        halves[0].copy_from_slice(&bytes[..16]);
        halves[1].copy_from_slice(&bytes[16..]);
        let [first, second] = halves.map(u128::from_be_bytes);
        Self { first, second }
    }

    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.first.to_be_bytes());
        bytes[16..].copy_from_slice(&self.second.to_be_bytes());
        bytes
    }

    /// Without its highest coefficient, and `step` added.
    fn next(self, step: &Self) -> Self {
        Self {
            first: (self.first << 8 | self.second >> 120) ^ step.first,
            second: (self.second << 8) ^ step.second,
        }
    }
}

struct Bits {
    bytes: [u8; CAPACITY],
    used: usize,
}

impl Bits {
    /// Appends up to 16 bits.
    fn push(&mut self, value: u32, count: usize) {
        let at = self.used / 8;
        let shifted = value << (24 - count - self.used % 8);
        for (byte, part) in self.bytes[at..at + 3].iter_mut().zip(&shifted.to_be_bytes()[1..]) {
            *byte |= part;
        }
        self.used += count;
    }
}

fn count_bits(version: usize, alphanumeric: bool) -> usize {
    match (alphanumeric, version < 10) {
        (true, true) => 9,
        (true, false) => 11,
        (false, true) => 8,
        (false, false) => 16,
    }
}

fn data_codewords(version: usize) -> usize {
    raw_modules(version) / 8 - ECC_PER_BLOCK[version] * BLOCKS[version]
}

/// Modules for data and error correction.
fn raw_modules(version: usize) -> usize {
    let mut modules = (16 * version + 128) * version + 64;
    if version >= 2 {
        let alignments = version / 7 + 2;
        modules -= (25 * alignments - 10) * alignments - 55;
        if version >= 7 {
            modules -= 36;
        }
    }
    modules
}

/// Product in the field of 256 elements with the polynomial 0x11D.
fn multiply(a: u8, b: u8) -> u8 {
    let mut product = 0_u8;
    for bit in (0..8).rev() {
        let carry = product >> 7;
        product = (product << 1) ^ (carry * 0x1D) ^ ((b >> bit & 1) * a);
    }
    product
}

/// Coefficients of the generator polynomial, highest first, without the leading one.
fn generator(degree: usize) -> Vec<u8> {
    let mut coefficients = vec![0; degree];
    coefficients[degree - 1] = 1;
    let mut root = 1;
    for _ in 0..degree {
        for index in 0..degree {
            coefficients[index] = multiply(coefficients[index], root);
            if index + 1 < degree {
                coefficients[index] ^= coefficients[index + 1];
            }
        }
        root = multiply(root, 2);
    }
    coefficients
}
