//! Turns the PDF that Typst wrote into the shared part of every ticket.
//!
//! Reachable objects are numbered anew from 1; small ones go into one compressed object stream, streams
//! are compressed as well as can be, for it is done once and copied into every ticket. Document
//! structure (catalog, page tree, metadata) is left out: the stamper writes its own.

mod content;
mod objects;
mod parse;
mod shading;
mod slim;

use std::collections::BTreeMap;

use stampede_render::compiled::{Page, StaticPdf};

use self::objects::Objects;
use self::parse::{Dict, Document, Object};
use crate::extract::Gradient;

/// What becomes of a PDF.
pub(crate) struct Repacked {
    /// Its language.
    pub(crate) lang: String,
    /// The shared objects.
    pub(crate) base: StaticPdf,
    /// The first pages.
    pub(crate) pages: Vec<Page>,
    /// The further pages as form XObjects in a unit square: their object numbers.
    pub(crate) forms: Vec<u32>,
}

/// Why a PDF could not be repacked. Typst's own are well-formed, so this is a mistake of ours.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Syntax(&'static str),
    #[error("a stream cannot be unpacked")]
    Stream,
    #[error("it has fewer pages than it should")]
    Pages,
}

/// Repacks a PDF: the first `count` pages as pages, the others as forms.
pub(crate) fn repack(pdf: &[u8], count: usize, gradients: &[Gradient]) -> Result<Repacked, Error> {
    let document = Document::read(pdf)?;
    let mut objects = Objects::new(&document);
    let mut patterns = Vec::new();
    for (index, gradient) in gradients.iter().enumerate() {
        patterns.push((format!("F{index}"), shading::pattern(gradient, &mut objects)?));
    }
    let mut pages = Vec::new();
    let mut forms = Vec::new();
    for (index, page) in document.pages()?.into_iter().enumerate() {
        let source = Source::read(&document, page)?;
        if index < count {
            pages.push(source.page(&mut objects, &patterns)?);
        } else {
            forms.push(source.form(&mut objects)?);
        }
    }
    if pages.len() < count.max(1) {
        return Err(Error::Pages);
    }
    let lang = match document.catalog()?.get("Lang") {
        Some(Object::String(text)) => {
            String::from_utf8_lossy(text).trim_matches(['(', ')']).to_owned()
        }
        _ => "en".to_owned(),
    };
    Ok(Repacked { lang, base: objects.finish()?, pages, forms })
}

/// A page as Typst wrote it.
struct Source {
    width: f32,
    height: f32,
    content: Vec<u8>,
    resources: Dict,
    group: Option<Object>,
    links: Vec<Dict>,
}

impl Source {
    fn read(document: &Document<'_>, page: &Dict) -> Result<Self, Error> {
        let media = page.get("MediaBox").ok_or(Error::Pages)?;
        let edges: Vec<f64> = document
            .array(media)?
            .iter()
            .filter_map(|edge| if let Object::Number(edge) = edge { Some(*edge) } else { None })
            .collect();
        let [left, bottom, right, top] = edges[..] else { return Err(Error::Pages) };
        let mut content = Vec::new();
        let parts = page.get("Contents").ok_or(Error::Pages)?;
        let parts = match document.resolve(parts)? {
            Object::Array(parts) => parts.as_slice(),
            _ => std::slice::from_ref(parts),
        };
        for part in parts {
            let Object::Reference(number) = part else { return Err(Error::Stream) };
            content.extend(objects::stream_bytes(document.get(*number)?)?);
            content.push(b'\n');
        }
        let resources = match page.get("Resources") {
            Some(resources) => document.dict(resources)?.clone(),
            None => Dict::default(),
        };
        let mut links = Vec::new();
        if let Some(annotations) = page.get("Annots") {
            for annotation in document.array(annotations)? {
                links.extend(web_link(document, annotation));
            }
        }
        Ok(Self {
            width: (right - left) as f32,
            height: (top - bottom) as f32,
            content: content::minified(&content),
            resources,
            group: page.get("Group").cloned(),
            links,
        })
    }

    fn page(self, objects: &mut Objects<'_>, patterns: &[(String, u32)]) -> Result<Page, Error> {
        // Fields are drawn after this, in the state the page began with.
        let content = [b"q\n".as_slice(), &self.content, b"Q\n"].concat();
        let content = objects.add_stream(&Dict::default(), content)?;
        let (resources, fonts) = self.resource_text(objects, patterns)?;
        let mut entries = String::new();
        if let Some(group) = &self.group {
            entries.push_str(&format!("/Group {}", objects.text(group)?));
        }
        if !self.links.is_empty() {
            let mut list = String::new();
            for link in &self.links {
                let text = format!("<<{}>>", objects.entries(link)?);
                list.push_str(&format!("{} 0 R ", objects.add_text(text)));
            }
            entries.push_str(&format!("/Annots[{}]", list.trim_end()));
        }
        Ok(Page { width: self.width, height: self.height, content, resources, fonts, entries })
    }

    /// The page as an XObject that fills a unit square, as images do.
    fn form(self, objects: &mut Objects<'_>) -> Result<u32, Error> {
        let (width, height) = (self.width.max(1.0), self.height.max(1.0));
        let mut dict = Dict::default();
        let name = |name: &str| Object::Name(name.as_bytes().to_vec());
        let list = |numbers: [f32; 6], count| -> Object {
            Object::Array(numbers[..count].iter().map(|n| Object::Number(f64::from(*n))).collect())
        };
        dict.set("Type", name("XObject"));
        dict.set("Subtype", name("Form"));
        dict.set("BBox", list([0.0, 0.0, width, height, 0.0, 0.0], 4));
        dict.set("Matrix", list([1.0 / width, 0.0, 0.0, 1.0 / height, 0.0, 0.0], 6));
        dict.set("Resources", Object::Dict(self.resources));
        if let Some(group) = self.group {
            dict.set("Group", group);
        }
        objects.add_stream(&dict, self.content)
    }

    /// The insides of the resource dictionary without fonts, and of its font dictionary.
    fn resource_text(
        &self,
        objects: &mut Objects<'_>,
        patterns: &[(String, u32)],
    ) -> Result<(String, String), Error> {
        let mut kinds: BTreeMap<&[u8], Dict> = BTreeMap::new();
        for (kind, entries) in &self.resources.0 {
            if let Ok(entries) = objects.source().dict(entries) {
                kinds.insert(kind, entries.clone());
            }
        }
        let mut fonts = String::new();
        let mut others = String::new();
        let own = kinds.remove(b"Pattern".as_slice());
        let mut list = String::new();
        if let Some(own) = &own {
            list.push_str(&objects.entries(own)?);
        }
        for (name, number) in patterns {
            list.push_str(&format!("/{name} {number} 0 R"));
        }
        if !list.is_empty() {
            others.push_str(&format!("/Pattern<<{list}>>"));
        }
        for (kind, entries) in &kinds {
            if entries.0.is_empty() {
                continue;
            }
            let text = objects.entries(entries)?;
            match *kind {
                b"Font" => fonts = text,
                kind => others.push_str(&format!("/{}<<{text}>>", String::from_utf8_lossy(kind))),
            }
        }
        Ok((others, fonts))
    }
}

/// A link to the web, without what ties it to its document; links inside a ticket are dropped.
fn web_link(document: &Document<'_>, annotation: &Object) -> Option<Dict> {
    let annotation = document.dict(annotation).ok()?;
    let action = document.dict(annotation.get("A")?).ok()?;
    let name = |name: &str| Object::Name(name.as_bytes().to_vec());
    let mut to = Dict::default();
    to.set("S", name("URI"));
    to.set("URI", action.get("URI")?.clone());
    let mut link = Dict::default();
    link.set("Type", name("Annot"));
    link.set("Subtype", name("Link"));
    link.set("Rect", annotation.get("Rect")?.clone());
    link.set("Border", Object::Array(vec![Object::Number(0.0); 3]));
    link.set("A", Object::Dict(to));
    Some(link)
}
