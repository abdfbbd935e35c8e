//! Jobs of the studio, one file each.

pub(crate) mod generate_sticker;
