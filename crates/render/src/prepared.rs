//! A compiled template, made ready for many tickets: fonts parsed, everything written that is the
//! same on all of them.

use sha2::{Digest, Sha256};

use crate::blob::{check, serialise};
use crate::compiled::{FieldKind, Fill, ObjectPlace, Stamped};
use crate::error::Error;
use crate::face::{Face, FontError, MOST_SUBSET_BYTES};
use crate::pdf::syntax::add_resource;
use crate::pdf::write::{precise_list, reference, text_string};
use crate::text::shape::Setting;

/// A template ready for stamping. Shared by all threads.
pub struct Prepared {
    pub(crate) stamped: Stamped,
    pub(crate) faces: Vec<Face>,
    /// By field; `None` for those that are no text.
    pub(crate) settings: Vec<Option<Setting>>,
    /// By page.
    pub(crate) pages: Vec<PreparedPage>,
    /// Static part, catalog and page tree.
    pub(crate) prefix: Vec<u8>,
    /// Entries of the cross-reference stream for `prefix`, with object 0.
    pub(crate) xref: Vec<u8>,
    /// Tells templates apart.
    pub(crate) hash: [u8; 16],
    /// The title in pieces.
    pub(crate) title: Vec<TitlePart>,
    /// By field: the graphics state with its opacity, the first of its images.
    pub(crate) resources: Vec<FieldResources>,
}

/// Names of what a field uses of its page's resources.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FieldResources {
    pub(crate) opacity: Option<usize>,
    pub(crate) first_image: usize,
}

/// What is written of a page before and after the numbers that differ.
pub(crate) struct PreparedPage {
    /// `/MediaBox[…]` with resources up to the static fonts.
    pub(crate) head: Vec<u8>,
    /// Static fonts, without the end of the dictionary.
    pub(crate) fonts: Vec<u8>,
    /// Further entries.
    pub(crate) tail: Vec<u8>,
}

/// A piece of the title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TitlePart {
    Text(String),
    Field(String),
}

/// Bytes of a cross-reference entry: kind, place, index.
pub(crate) const XREF_ENTRY: usize = 1 + 4 + 2;

/// Share of a font in [`MOST_SUBSET_BYTES`] at least.
const LEAST_SHARE: usize = 512 << 10;
/// Contents, widths, shipped fonts and what else a ticket has beside its static part and its own fonts.
const BESIDE: usize = 256 << 10;

impl Prepared {
    /// Checks the template and parses its fonts.
    pub fn new(stamped: Stamped) -> Result<Self, Error> {
        check(&stamped).map_err(Error::Template)?;
        let mut faces = stamped
            .fonts
            .iter()
            .map(Face::new)
            .collect::<Result<Vec<Face>, FontError>>()
            .map_err(Error::Font)?;
        let own = faces.iter().filter(|face| face.is_own()).count();
        for face in faces.iter_mut().filter(|face| face.is_own()) {
            face.most_subset_bytes = (MOST_SUBSET_BYTES / own).max(LEAST_SHARE);
        }
        let settings = stamped
            .fields
            .iter()
            .enumerate()
            .map(|(index, field)| match &field.kind {
                FieldKind::Text(text) => Some(Setting::new(index as u16, text)),
                FieldKind::Qr { .. } | FieldKind::Image { .. } => None,
            })
            .collect();
        let (pages, resources) = prepare_pages(&stamped)?;
        let (prefix, xref) = prepare_prefix(&stamped);
        let mut hash = [0; 16];
        hash.copy_from_slice(&Sha256::digest(serialise(&stamped))[..16]);
        let title = split_title(&stamped.title);
        Ok(Self { stamped, faces, settings, pages, prefix, xref, hash, title, resources })
    }

    /// Memory in bytes that every ticket takes while it is written, whatever it says.
    pub(crate) fn fixed_memory(&self) -> usize {
        2 * self.prefix.len() + BESIDE
    }

    /// Bytes of the template in memory.
    pub fn bytes(&self) -> usize {
        let faces: usize = self.faces.iter().map(|face| face.own_bytes()).sum();
        2 * self.prefix.len() + 2 * faces + BESIDE
    }

    /// Number of the last static object.
    pub(crate) fn last_static(&self) -> u32 {
        self.stamped.base.objects.len() as u32
    }

    pub(crate) fn catalog(&self) -> u32 {
        self.last_static() + 1
    }

    pub(crate) fn page_tree(&self) -> u32 {
        self.last_static() + 2
    }

    /// Number of a page; its own content has the next.
    pub(crate) fn page(&self, index: usize) -> u32 {
        self.last_static() + 3 + 2 * index as u32
    }

    /// First number after the pages.
    pub(crate) fn after_pages(&self) -> u32 {
        self.page(self.pages.len())
    }
}

fn prepare_pages(stamped: &Stamped) -> Result<(Vec<PreparedPage>, Vec<FieldResources>), Error> {
    let mut texts: Vec<String> = stamped.pages.iter().map(|page| page.resources.clone()).collect();
    let mut fields = Vec::new();
    let mut names = 0;
    for field in &stamped.fields {
        let mut own = FieldResources::default();
        let text = &mut texts[field.page as usize];
        let mut add = |category: &str, entry: String| {
            if add_resource(text, category, &entry) {
                return Ok(());
            }
            Err(Error::Template(format!("the page's {category} is not in its resources")))
        };
        match &field.kind {
            FieldKind::Text(text) => {
                if let Fill::Solid(_, opacity) = text.fill
                    && opacity < 1.0
                {
                    add("/ExtGState", format!("/Sg{names}<</ca {opacity:.3}>>"))?;
                    own.opacity = Some(names);
                    names += 1;
                }
            }
            FieldKind::Image { choices, .. } => {
                own.first_image = names;
                for choice in choices {
                    add("/XObject", format!("/Si{names} {} 0 R", choice.object))?;
                    names += 1;
                }
            }
            FieldKind::Qr { .. } => {}
        }
        fields.push(own);
    }
    let pages = stamped.pages.iter().zip(texts).map(|(page, resources)| {
        let mut head = b"/MediaBox[0 0 ".to_vec();
        precise_list(&mut head, &[page.width, page.height]);
        head.extend_from_slice(b"]/Resources<<");
        head.extend_from_slice(resources.as_bytes());
        head.extend_from_slice(b"/Font<<");
        PreparedPage {
            head,
            fonts: page.fonts.clone().into_bytes(),
            tail: page.entries.clone().into_bytes(),
        }
    });
    Ok((pages.collect(), fields))
}

/// The bytes that all tickets begin with, and their entries in the cross-reference stream.
fn prepare_prefix(stamped: &Stamped) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = stamped.base.bytes.clone();
    let mut xref = Vec::new();
    xref_entry(&mut xref, 0, 0, u16::MAX);
    for place in &stamped.base.objects {
        match *place {
            ObjectPlace::At(at) => xref_entry(&mut xref, 1, at, 0),
            ObjectPlace::InStream { stream, index } => {
                xref_entry(&mut xref, 2, stream, index as u16);
            }
        }
    }
    let last = stamped.base.objects.len() as u32;
    xref_entry(&mut xref, 1, prefix.len() as u32, 0);
    prefix.extend_from_slice(format!("{} 0 obj\n", last + 1).as_bytes());
    write_catalog(&mut prefix, last + 2, &stamped.lang);
    prefix.extend_from_slice(b"\nendobj\n");
    xref_entry(&mut xref, 1, prefix.len() as u32, 0);
    prefix.extend_from_slice(format!("{} 0 obj\n<</Type/Pages/Kids[", last + 2).as_bytes());
    for index in 0..stamped.pages.len() as u32 {
        reference(&mut prefix, last + 3 + 2 * index);
        prefix.push(b' ');
    }
    prefix.extend_from_slice(format!("]/Count {}>>\nendobj\n", stamped.pages.len()).as_bytes());
    (prefix, xref)
}

/// Writes the catalog's dictionary.
pub(crate) fn write_catalog(out: &mut Vec<u8>, pages: u32, lang: &str) {
    out.extend_from_slice(b"<</Type/Catalog/Pages ");
    reference(out, pages);
    out.extend_from_slice(b"/Lang");
    text_string(out, lang);
    out.extend_from_slice(b"/ViewerPreferences<</DisplayDocTitle true>>>>");
}

/// Appends an entry of a cross-reference stream.
pub(crate) fn xref_entry(out: &mut Vec<u8>, kind: u8, place: u32, index: u16) {
    out.push(kind);
    out.extend_from_slice(&place.to_be_bytes());
    out.extend_from_slice(&index.to_be_bytes());
}

/// Takes `{name}` apart from the text around it. A brace without its other half is text.
fn split_title(title: &str) -> Vec<TitlePart> {
    let mut parts = Vec::new();
    let mut rest = title;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        parts.push(TitlePart::Text(before.to_owned()));
        parts.push(TitlePart::Field(name.to_owned()));
        rest = behind;
    }
    parts.push(TitlePart::Text(rest.to_owned()));
    parts.retain(|part| !matches!(part, TitlePart::Text(text) if text.is_empty()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_split_at_their_fields() {
        let text = |text: &str| TitlePart::Text(text.to_owned());
        assert_eq!(
            split_title("Ticket {name} · {"),
            [text("Ticket "), TitlePart::Field("name".to_owned()), text(" · {")]
        );
        assert_eq!(split_title(""), []);
    }
}
