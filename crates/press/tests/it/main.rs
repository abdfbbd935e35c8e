//! The press with a real store and a compiler that only counts: what is compiled, how often, and what
//! becomes of mistakes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stampede_model::{
    Diagnostic, Event, Template, TemplateChoice, TemplateFiles, TemplateId, TicketDocument,
    Timestamp,
};
use stampede_press::{
    Answer, Compiler, Design, Error, MergeSource, Picture, Press, Published, sample,
};
use stampede_render::compiled::{Compiled, Typeset};
use stampede_render::{Continuation, Piece};
use stampede_store::{Config, NewRevision, Revised, Store};
use stampede_testkit::{TempDir, temp_dir};

/// Compiles everything to a template that is typeset, and typesets what it was given.
struct Counting {
    version: &'static str,
    designs: Vec<Design>,
    compiled: AtomicU32,
}

impl Counting {
    fn new(version: &'static str) -> Arc<Self> {
        let design = Design { name: "a4".into(), title: "A4".into(), files: files("the design") };
        Arc::new(Self { version, designs: vec![design], compiled: AtomicU32::new(0) })
    }

    fn count(&self) -> u32 {
        self.compiled.load(Ordering::SeqCst)
    }
}

impl Compiler for Counting {
    fn version(&self) -> &str {
        self.version
    }

    fn designs(&self) -> &[Design] {
        &self.designs
    }

    fn missing_glyphs(&self, text: &str) -> Vec<char> {
        text.chars().filter(|c| *c == '𓀀').collect()
    }

    fn compile<'a>(&'a self, files: &'a TemplateFiles, event: &'a Event) -> Answer<'a, Published> {
        Box::pin(async move {
            self.compiled.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let text = String::from_utf8(files.get("template.typ").unwrap().to_vec()).unwrap();
            match text.as_str() {
                "broken" => return Err(Error::Template(vec![Diagnostic::error(None, "broken")])),
                "away" => return Err(Error::Unavailable("no more processes".into())),
                _ => {}
            }
            let reason = format!("{text} for {}", event.details.name);
            let compiled = Compiled::Typeset(Typeset { reason, files: Vec::new() });
            let blob = stampede_render::blob::encode(&compiled);
            Ok(Published { blob, warnings: Vec::new(), pages: Vec::new(), fields: Vec::new() })
        })
    }

    fn typeset<'a>(
        &'a self,
        template: &'a Typeset,
        document: &'a TicketDocument,
    ) -> Answer<'a, Vec<u8>> {
        let text = format!("{}: {}", template.reason, document.name);
        Box::pin(async move { Ok(text.into_bytes()) })
    }

    fn merge<'a>(
        &'a self,
        _: MergeSource<'a>,
        _: &'a [TicketDocument],
        _: &'a Continuation,
    ) -> Answer<'a, Piece> {
        Box::pin(async { Err(Error::Unavailable("not in this test".into())) })
    }

    fn picture<'a>(&'a self, _: &'a [u8], _: Picture) -> Answer<'a, Vec<u8>> {
        Box::pin(async { Err(Error::Unavailable("not in this test".into())) })
    }
}

fn files(text: &str) -> TemplateFiles {
    TemplateFiles::new([("template.typ".to_owned(), text.as_bytes().to_vec())].into()).unwrap()
}

async fn store() -> (TempDir, Store) {
    let folder = temp_dir();
    let url = format!("sqlite:{}/x.db", folder.path().display());
    let store = Store::connect(&Config { url, ..Config::default() }).await.unwrap();
    store.migrate().await.unwrap();
    (folder, store)
}

fn press(store: &Store, compiler: &Arc<Counting>) -> Press {
    Press::new(store.clone(), compiler.clone(), files("the default"))
}

fn revision(text: &str) -> NewRevision {
    NewRevision { files: files(text), author: "ann".into(), note: String::new() }
}

async fn written(store: &Store, text: &str) -> TemplateId {
    let now = Timestamp::UNIX_EPOCH;
    let id = TemplateId::generate();
    let (owner, name) = ("ann".to_owned(), "T".to_owned());
    let template = Template { id, owner, name, revision: 1, created_at: now, updated_at: now };
    store.insert_template(&template, &revision(text)).await.unwrap();
    id
}

fn event(template: Option<TemplateChoice>) -> Event {
    let mut event = sample::event();
    event.details.template = template;
    event
}

async fn printed(press: &Press, event: &Event) -> String {
    let ready = press.ready(event).await.unwrap();
    let document = sample::document(event, sample::holder(), None);
    String::from_utf8(press.pdf(&ready, &document).await.unwrap().0).unwrap()
}

#[tokio::test]
async fn a_template_is_compiled_once_for_all_processes() {
    let ((_folder, store), compiler) = (store().await, Counting::new("1"));
    let (one, other) = (press(&store, &compiler), press(&store, &compiler));
    let event = event(None);
    let (a, b) = tokio::join!(printed(&one, &event), printed(&one, &event));
    assert_eq!((a.as_str(), &a), ("the default for Sample Night: Zoë Петрова", &b));
    assert_eq!(printed(&other, &event).await, a);
    assert_eq!(compiler.count(), 1);
    let revision = one.revision_of(&event).await.unwrap();
    assert_eq!(one.ready(&event).await.unwrap().revision(), revision);

    let mut renamed = event.clone();
    renamed.details.name = "Other Night".into();
    assert!(printed(&one, &renamed).await.contains("Other Night"));
    assert_eq!(compiler.count(), 2, "another event is another compilation");
    assert_eq!(one.revision_of(&renamed).await.unwrap(), revision);

    let newer = Counting::new("2");
    let upgraded = press(&store, &newer);
    printed(&upgraded, &event).await;
    assert_eq!(newer.count(), 1, "what an older version compiled is not used");
    assert_ne!(upgraded.revision_of(&event).await.unwrap(), revision);
}

#[tokio::test]
async fn the_latest_revision_is_followed_and_a_pinned_one_is_kept() {
    let ((_folder, store), compiler) = (store().await, Counting::new("1"));
    let press = press(&store, &compiler);
    let id = written(&store, "first").await;
    let latest = event(Some(TemplateChoice::Own { id, revision: None }));
    let pinned = event(Some(TemplateChoice::Own { id, revision: Some(1) }));
    assert!(printed(&press, &latest).await.starts_with("first"));
    let before = press.revision_of(&latest).await.unwrap();
    assert_eq!(press.revision_of(&pinned).await.unwrap(), before);
    assert!(printed(&press, &pinned).await.starts_with("first"));
    assert_eq!(compiler.count(), 1, "the same files for the same event are compiled once");

    let seen = store.template(id).await.unwrap().unwrap().updated_at;
    let revised = store.revise_template(id, "T", &revision("second"), seen, Timestamp::now()).await;
    assert!(matches!(revised.unwrap(), Revised::New(_)));
    assert!(printed(&press, &latest).await.starts_with("second"));
    assert!(printed(&press, &pinned).await.starts_with("first"));
    assert_ne!(press.revision_of(&latest).await.unwrap(), before);

    let design = event(Some(TemplateChoice::Shipped("a4".into())));
    assert!(printed(&press, &design).await.starts_with("the design"));
    for missing in [
        TemplateChoice::Shipped("poster".into()),
        TemplateChoice::Own { id, revision: Some(9) },
        TemplateChoice::Own { id: TemplateId::generate(), revision: None },
    ] {
        let event = event(Some(missing));
        assert!(matches!(press.ready(&event).await, Err(Error::NoSuchTemplate(_))));
        assert!(matches!(press.revision_of(&event).await, Err(Error::NoSuchTemplate(_))));
    }
}

#[tokio::test]
async fn a_damaged_blob_is_made_anew() {
    let ((_folder, store), compiler) = (store().await, Counting::new("1"));
    let event = event(None);
    let text = printed(&press(&store, &compiler), &event).await;
    damage_all(&store).await;
    assert_eq!(printed(&press(&store, &compiler), &event).await, text);
    assert_eq!(compiler.count(), 2);
    assert_eq!(printed(&press(&store, &compiler), &event).await, text);
    assert_eq!(compiler.count(), 2, "and kept again");
}

/// Overwrites all that is kept with bytes that mean nothing.
async fn damage_all(store: &Store) {
    for key in store.compiled_template_keys().await.unwrap() {
        store.keep_compiled_template(&key, b"STPL but not really", Timestamp::now()).await.unwrap();
    }
}

#[tokio::test]
async fn a_mistake_is_remembered_for_a_while_and_an_outage_is_not() {
    let ((_folder, store), compiler) = (store().await, Counting::new("1"));
    let press = press(&store, &compiler);
    for (text, tries) in [("broken", 1), ("away", 4)] {
        let id = written(&store, text).await;
        let event = event(Some(TemplateChoice::Own { id, revision: None }));
        for _ in 0..3 {
            assert!(press.ready(&event).await.is_err());
        }
        assert_eq!(compiler.count(), tries, "{text}");
    }
    let (files, event) = (files("draft"), sample::event());
    press.try_out(&files, &event).await.unwrap();
    press.try_out(&files, &event).await.unwrap();
    assert_eq!(compiler.count(), 6, "trying out keeps nothing");
    assert_eq!(store.compiled_template_keys().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_template_of_an_organiser_is_apart_and_ours_is_not() {
    let ((_folder, store), compiler) = (store().await, Counting::new("1"));
    let press = press(&store, &compiler);
    let id = written(&store, "first").await;
    let own = event(Some(TemplateChoice::Own { id, revision: None }));
    let ours = event(None);
    for (event, is_organisers) in [(&own, true), (&ours, false)] {
        let found = press.find(event).await.unwrap();
        assert!(!found.is_in_memory());
        assert_eq!(found.is_organisers(), is_organisers);
        let ready = found.ready().await.unwrap();
        assert_eq!(ready.is_organisers(), is_organisers);
        assert!(press.find(event).await.unwrap().is_in_memory());
    }
}

#[tokio::test]
async fn a_slow_template_is_checked_for_letters_that_no_font_has() {
    let ((_folder, store), compiler) = (store().await, Counting::new("1"));
    let press = press(&store, &compiler);
    let event = event(None);
    let ready = press.ready(&event).await.unwrap();
    let named = |name: &str| {
        let holder = stampede_model::Holder { name: name.into(), ..sample::holder() };
        sample::document(&event, holder, None)
    };
    let documents = [named("Ann"), named("Ra 𓀀"), named("Bob")];
    let flagged = stampede_press::preflight(&*compiler, &ready, documents.into_iter());
    let [(1, warnings)] = flagged.as_slice() else { panic!("{flagged:?}") };
    assert_eq!((warnings[0].kind, warnings[0].field.as_str()), ("missing_glyphs", "name"));
    assert!(warnings[0].message.contains("U+13000"), "{}", warnings[0].message);
}
