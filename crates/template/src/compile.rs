//! Publishing: a bundle and an event become a compiled template.
//!
//! ```text
//! Typst lays out ──▶ fields are taken out ──▶ the rest becomes a PDF ──▶ repacked, to be copied
//!       │                    │
//!       └ looked at ticket   └ a field no stamper could draw ──▶ typeset for every ticket
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use stampede_render::compiled::{Compiled, Field, FieldKind, ImageChoice, Stamped, Typeset};
use typst::diag::Warned;
use typst::ecow::EcoVec;
use typst::foundations::Smart;
use typst::layout::{Abs, Frame, Sides};
use typst_layout::{Page, PagedDocument};
use typst_pdf::PdfOptions;

use crate::bundle::MAIN_FILE;
use crate::clusters::joined;
use crate::diagnostics::told;
use crate::extract::{Extracted, extract};
use crate::prelude::{self, LINES_BEFORE, Mode};
use crate::repack::{self, Repacked};
use crate::world::{Kit, TemplateWorld};
use crate::{Bundle, Diagnostic, EventData, typeset};

/// After this many compilations the cache is swept.
const SWEEP_EVERY: usize = 8;

/// A cached result goes at the second sweep in a row that finds it unused.
const SWEEPS_SURVIVED: usize = 2;

/// A ticket is a few pages, not a book.
const MOST_PAGES: usize = 20;

/// Largest side of a page in points: 2 m.
const LONGEST_SIDE: f64 = 5_669.3;

/// A template that can be used, and what to know about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The compiled template, as it is stored.
    pub blob: Vec<u8>,
    /// What the organiser should look at.
    pub warnings: Vec<Diagnostic>,
    /// Width and height of its pages in points.
    pub pages: Vec<(f32, f32)>,
    /// Which values of the ticket its fields show; empty if it is typeset.
    pub fields: Vec<String>,
    /// Why every ticket must be typeset, if so.
    pub slow_because: Option<String>,
}

/// A compiled template before it is packed.
pub(crate) struct Outcome {
    pub(crate) compiled: Compiled,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) pages: Vec<(f32, f32)>,
}

/// Compiles a template for an event. Runs people's code: in production only in the sandbox.
pub fn compile(bundle: &Bundle, event: &EventData) -> Result<Published, Vec<Diagnostic>> {
    let Outcome { compiled, warnings, pages } = outcome(bundle, event)?;
    let (fields, slow_because) = match &compiled {
        Compiled::Stamped(stamped) => {
            let mut names: Vec<String> =
                stamped.fields.iter().map(|field| field.name.clone()).collect();
            names.sort_unstable();
            names.dedup();
            (names, None)
        }
        Compiled::Typeset(typeset) => (Vec::new(), Some(typeset.reason.clone())),
    };
    let blob = stampede_render::blob::encode(&compiled);
    Ok(Published { blob, warnings, pages, fields, slow_because })
}

/// Compiles a template for an event.
pub(crate) fn outcome(bundle: &Bundle, event: &EventData) -> Result<Outcome, Vec<Diagnostic>> {
    let ticket = event.sample_ticket();
    let kit = Kit::new(bundle, event, Mode::Stamp)?;
    let world = TemplateWorld::new(Arc::new(kit), &ticket)?;
    let (document, mut warnings) = lay_out(&world)?;
    if world.uses_labels() && !prelude::speaks(&event.lang) {
        let message =
            format!("there are no labels in the language {:?}: they are in English", event.lang);
        warnings.push(Diagnostic::warning(message).hint("write them as texts instead of label(…)"));
    }
    let pages = page_sizes(&document);
    let found = extract(&document, world.fonts());
    let reason = if world.looked_at_ticket() {
        Some(
            world
                .where_ticket_is_read()
                .unwrap_or_else(|| format!("{MAIN_FILE}: reads the ticket")),
        )
    } else {
        found.obstacles.first().map(|obstacle| format!("{MAIN_FILE}: {obstacle}"))
    };
    if let Some(reason) = reason {
        let mut files: Vec<(String, Vec<u8>)> = bundle.files().clone().into_iter().collect();
        // Serialising a struct of strings cannot fail.
        files.push(("event.json".into(), serde_json::to_vec(event).unwrap_or_default()));
        files.sort();
        let typeset = Typeset { reason: reason.clone(), files };
        // Mistakes that show only with a ticket at hand are told now, not to the first guest.
        typeset::typeset(&typeset, &ticket)?;
        warnings.push(
            Diagnostic::warning(format!("every ticket is typeset on its own: {reason}"))
                .hint("templates of fields alone are made a hundred times faster"),
        );
        return Ok(Outcome { compiled: Compiled::Typeset(typeset), warnings, pages });
    }
    if !found.fields.iter().any(|field| matches!(field.kind, FieldKind::Qr { .. })) {
        warnings.push(
            Diagnostic::warning("the template has no code for the entrance to scan")
                .hint("#qr(40mm) draws it"),
        );
    }
    let stamped = stamped(&document, found, event)?;
    Ok(Outcome { compiled: Compiled::Stamped(Box::new(stamped)), warnings, pages })
}

/// Now and then throws out of Typst's cache, which belongs to the whole process, what no recent ticket
/// needed: looking through it takes a fifteenth of the time that a ticket takes.
fn sweep() {
    static COMPILED: AtomicUsize = AtomicUsize::new(0);
    if COMPILED.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
        comemo::evict(SWEEPS_SURVIVED);
    }
}

/// Runs Typst; gives the pages and its warnings.
pub(crate) fn lay_out(
    world: &TemplateWorld,
) -> Result<(PagedDocument, Vec<Diagnostic>), Vec<Diagnostic>> {
    let all_told = |all: &[typst::diag::SourceDiagnostic]| -> Vec<Diagnostic> {
        all.iter().map(|one| told(world, one, LINES_BEFORE)).collect()
    };
    let Warned { output, warnings } = typst::compile::<PagedDocument>(world);
    sweep();
    let document = output.map_err(|errors| all_told(&errors))?;
    let count = document.pages().len();
    if count > MOST_PAGES {
        let message = format!("the template has {count} pages, more than {MOST_PAGES}");
        return Err(vec![Diagnostic::error(Some(MAIN_FILE), message)]);
    }
    for page in document.pages() {
        let (width, height) = (page.frame.width().to_pt(), page.frame.height().to_pt());
        if !(3.0..=LONGEST_SIDE).contains(&width) || !(3.0..=LONGEST_SIDE).contains(&height) {
            let message =
                format!("a page of {width:.0} × {height:.0} pt is too small or too large to print");
            let hint = "set page(width: 80mm, height: 200mm) sets the size";
            return Err(vec![Diagnostic::error(Some(MAIN_FILE), message).hint(hint)]);
        }
    }
    Ok((document, all_told(&warnings)))
}

/// Pages as PDF, without anything that differs between two runs.
pub(crate) fn options(ident: &str) -> PdfOptions {
    PdfOptions {
        ident: Smart::Custom(ident.to_owned()),
        creator: Smart::Custom(Some("Stampede".to_owned())),
        timestamp: None,
        tagged: false,
        ..PdfOptions::default()
    }
}

/// The pages without fields, repacked, with the fields beside them.
fn stamped(
    document: &PagedDocument,
    found: Extracted,
    event: &EventData,
) -> Result<Stamped, Vec<Diagnostic>> {
    let Extracted { pages, mut fields, overlays, gradients, fonts, .. } = found;
    let count = pages.len();
    let mut info = document.clone().info_mut().clone();
    let title = info.title.take().map(|title| title.to_string());
    let with_frames = document.pages().iter().zip(pages);
    let mut all: EcoVec<Page> =
        with_frames.map(|(page, frame)| Page { frame: joined(&frame), ..page.clone() }).collect();
    let Some(pattern) = document.pages().first() else {
        return Err(vec![Diagnostic::error(Some(MAIN_FILE), "the template has no page")]);
    };
    all.extend(overlays.iter().map(|overlay| bare(pattern, joined(&overlay.frame))));
    let rest = PagedDocument::new(all, info);
    let pdf = typst_pdf::pdf(&rest, &options("static")).map_err(refused)?;
    let Repacked { lang, base, pages, forms } =
        repack::repack(&pdf, count, &gradients).map_err(|error| {
            vec![Diagnostic::error(Some(MAIN_FILE), format!("its PDF cannot be repacked: {error}"))]
        })?;
    for (overlay, object) in overlays.into_iter().zip(forms) {
        let size = overlay.frame.size();
        // Only the ratio matters; thousandths of a point keep it exact.
        let thousandths = |length: Abs| (length.to_pt() * 1000.0).round().max(1.0) as u32;
        let choice = ImageChoice {
            value: overlay.value,
            object,
            width: thousandths(size.x),
            height: thousandths(size.y),
        };
        if let Some(Field { kind: FieldKind::Image { choices, .. }, .. }) =
            fields.get_mut(overlay.field)
        {
            choices.push(choice);
        }
    }
    let title = title.unwrap_or_else(|| format!("{} – {{name}}", event.name));
    Ok(Stamped { lang, title, base, pages, fonts, fields })
}

/// The ticket that was typeset, as a template without fields: what merged PDFs are made of.
pub(crate) fn without_fields(
    document: &PagedDocument,
    title: String,
) -> Result<Stamped, Vec<Diagnostic>> {
    let pdf = typst_pdf::pdf(document, &options("static")).map_err(refused)?;
    let Repacked { lang, base, pages, .. } = repack::repack(&pdf, document.pages().len(), &[])
        .map_err(|error| {
            vec![Diagnostic::error(Some(MAIN_FILE), format!("its PDF cannot be repacked: {error}"))]
        })?;
    Ok(Stamped { lang, title, base, pages, fonts: Vec::new(), fields: Vec::new() })
}

fn bare(pattern: &Page, frame: Frame) -> Page {
    Page { frame, bleed: Sides::splat(Abs::zero()), fill: Smart::Custom(None), ..pattern.clone() }
}

/// What Typst's PDF writer refuses has no place in a source.
pub(crate) fn refused(errors: EcoVec<typst::diag::SourceDiagnostic>) -> Vec<Diagnostic> {
    let told = errors.iter().map(|one| Diagnostic::error(Some(MAIN_FILE), one.message.as_str()));
    told.collect()
}

fn page_sizes(document: &PagedDocument) -> Vec<(f32, f32)> {
    let size =
        |page: &Page| (page.frame.width().to_pt() as f32, page.frame.height().to_pt() as f32);
    document.pages().iter().map(size).collect()
}
