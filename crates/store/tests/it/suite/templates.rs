//! Templates: revisions, the events that use them, and the cache of compiled templates.

use stampede_model::{Template, TemplateChoice, TemplateFiles, TemplateId};
use stampede_store::{NewRevision, Revised, Store, TemplateDeleted};

use crate::backends::Database;
use crate::suite::samples::{at, event};

on_every_backend!(
    a_template_comes_back_as_it_was_written,
    a_revision_is_added_only_for_other_files,
    of_racing_authors_one_wins_and_the_others_learn_it,
    pages_of_templates_and_revisions_meet_without_gap_or_overlap,
    an_event_keeps_the_template_it_chose,
    a_template_that_an_event_uses_is_not_deleted,
    an_event_that_takes_a_template_while_it_is_deleted_never_points_nowhere,
    compiled_templates_are_kept_until_there_are_too_many,
);

fn revision(text: &str) -> NewRevision {
    let files = [
        ("template.typ".to_owned(), text.as_bytes().to_vec()),
        ("img/logo.png".to_owned(), vec![0, 255, 254, 0]),
    ];
    NewRevision {
        files: TemplateFiles::new(files.into()).unwrap(),
        author: "ann".into(),
        note: format!("says {text:?}; O'Hara"),
    }
}

pub(crate) async fn written(store: &Store, owner: &str, text: &str) -> Template {
    let template = Template {
        id: TemplateId::generate(),
        owner: owner.into(),
        name: "Шаблон \"A\"".into(),
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    };
    store.insert_template(&template, &revision(text)).await.unwrap();
    template
}

async fn a_template_comes_back_as_it_was_written(db: Database) {
    let store = db.store().await;
    let template = written(&store, "ann", "one").await;
    assert_eq!(store.template(template.id).await.unwrap().as_ref(), Some(&template));
    let (found, files) = store.template_files(template.id, None).await.unwrap().unwrap();
    let expected = revision("one");
    assert_eq!(files, expected.files);
    assert_eq!((found.number, &found.hash), (1, &expected.files.hash()));
    assert_eq!((found.author, found.note), (expected.author, expected.note));
    assert_eq!((found.size, found.created_at), (expected.files.size(), at(0)));
    assert_eq!(store.template_files(template.id, Some(2)).await.unwrap(), None);
    assert_eq!(store.template(TemplateId::generate()).await.unwrap(), None);
}

async fn a_revision_is_added_only_for_other_files(db: Database) {
    let store = db.store().await;
    let template = written(&store, "ann", "one").await;
    let revise = async |name: &str, text: &str, seen| {
        store.revise_template(template.id, name, &revision(text), seen, at(5)).await.unwrap()
    };
    let same = revise(&template.name, "one", at(0)).await;
    assert_eq!(same, Revised::Same(template.clone()), "nothing changed, not even the time");
    let Revised::Same(renamed) = revise("B", "one", at(0)).await else { panic!("a new name only") };
    assert_eq!((renamed.name.as_str(), renamed.revision, renamed.updated_at), ("B", 1, at(5)));
    let Revised::New(second) = revise("B", "two", at(5)).await else { panic!("other files") };
    assert_eq!(second.revision, 2);
    assert!(second.updated_at > at(5), "every change is later than the one before");
    assert_eq!(revise("B", "three", at(5)).await, Revised::ChangedMeanwhile);
    let Revised::New(third) = revise("B", "one", second.updated_at).await else { panic!() };
    assert_eq!(third.revision, 3, "going back to old files is a revision too");

    for (number, text) in [(Some(1), "one"), (Some(2), "two"), (Some(3), "one"), (None, "one")] {
        let (_, files) = store.template_files(template.id, number).await.unwrap().unwrap();
        assert_eq!(files, revision(text).files);
    }
    let found = store.template_revision(template.id, None).await.unwrap().unwrap();
    assert_eq!(found.number, 3);
    let nobody = TemplateId::generate();
    let missing = store.revise_template(nobody, "x", &revision("x"), at(0), at(1)).await.unwrap();
    assert_eq!(missing, Revised::NotFound);
}

async fn of_racing_authors_one_wins_and_the_others_learn_it(db: Database) {
    let store = db.store().await;
    let template = written(&store, "ann", "one").await;
    let authors: Vec<_> = (0..5)
        .map(|n| {
            let (store, id) = (store.clone(), template.id);
            tokio::spawn(async move {
                let text = format!("author {n}");
                store.revise_template(id, "x", &revision(&text), at(0), at(0)).await.unwrap()
            })
        })
        .collect();
    let mut won = 0;
    for author in authors {
        match author.await.unwrap() {
            Revised::New(_) => won += 1,
            other => assert_eq!(other, Revised::ChangedMeanwhile),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(store.template_revisions(template.id, None, 10).await.unwrap().len(), 2);
}

async fn pages_of_templates_and_revisions_meet_without_gap_or_overlap(db: Database) {
    let store = db.store().await;
    let mut all = Vec::new();
    for owner in ["ann", "bob", "ann", "ann"] {
        all.insert(0, written(&store, owner, "one").await);
    }
    let first = store.templates(None, None, 3).await.unwrap();
    let rest = store.templates(None, Some(first[2].id), 3).await.unwrap();
    assert_eq!([first, rest].concat(), all);
    assert_eq!(store.templates(Some("ann"), None, 10).await.unwrap().len(), 3);

    let id = all[0].id;
    for text in ["two", "three", "four"] {
        let seen = store.template(id).await.unwrap().unwrap().updated_at;
        store.revise_template(id, "x", &revision(text), seen, at(1)).await.unwrap();
    }
    let first = store.template_revisions(id, None, 3).await.unwrap();
    let rest = store.template_revisions(id, Some(first[2].number), 3).await.unwrap();
    let numbers: Vec<u32> = first.iter().chain(&rest).map(|found| found.number).collect();
    assert_eq!(numbers, [4, 3, 2, 1]);
}

async fn an_event_keeps_the_template_it_chose(db: Database) {
    let store = db.store().await;
    let id = written(&store, "ann", "one").await.id;
    let mut event = event("ann");
    store.insert_event(&event).await.unwrap();
    for choice in [
        Some(TemplateChoice::Shipped("badge".into())),
        Some(TemplateChoice::Own { id, revision: None }),
        Some(TemplateChoice::Own { id, revision: Some(1) }),
        None,
    ] {
        event.details.template = choice.clone();
        let seen = store.event(event.id).await.unwrap().unwrap().updated_at;
        assert!(store.update_event(&event, seen).await.unwrap());
        let found = store.event(event.id).await.unwrap().unwrap();
        assert_eq!(found.details.template, choice);
        let mut born_with_it = crate::suite::samples::event("ann");
        born_with_it.details.template = choice;
        store.insert_event(&born_with_it).await.unwrap();
        assert_eq!(store.event(born_with_it.id).await.unwrap(), Some(born_with_it));
    }
}

async fn a_template_that_an_event_uses_is_not_deleted(db: Database) {
    let store = db.store().await;
    let id = written(&store, "ann", "one").await.id;
    let mut event = event("ann");
    event.details.template = Some(TemplateChoice::Own { id, revision: Some(1) });
    store.insert_event(&event).await.unwrap();
    let refused = TemplateDeleted::UsedBy(vec![event.id]);
    assert_eq!(store.delete_template(id).await.unwrap(), refused);
    assert!(store.template_files(id, Some(1)).await.unwrap().is_some());

    event.details.template = None;
    assert!(store.update_event(&event, at(0)).await.unwrap());
    assert_eq!(store.delete_template(id).await.unwrap(), TemplateDeleted::Gone);
    assert_eq!(store.delete_template(id).await.unwrap(), TemplateDeleted::NotFound);
    assert_eq!(store.template_files(id, Some(1)).await.unwrap(), None);
}

async fn an_event_that_takes_a_template_while_it_is_deleted_never_points_nowhere(db: Database) {
    let store = db.store().await;
    for _ in 0..10 {
        let id = written(&store, "ann", "one").await.id;
        let mut event = event("ann");
        event.details.template = Some(TemplateChoice::Own { id, revision: None });
        let (inserted, deleted) =
            tokio::join!(store.insert_event(&event), store.delete_template(id));
        let left = store.template(id).await.unwrap().is_some();
        match deleted.unwrap() {
            TemplateDeleted::Gone => assert!(inserted.is_err() && !left),
            TemplateDeleted::UsedBy(users) => assert!(users == [event.id] && left),
            TemplateDeleted::NotFound | TemplateDeleted::ChangedMeanwhile => {
                panic!("it was there")
            }
        }
    }
}

async fn compiled_templates_are_kept_until_there_are_too_many(db: Database) {
    let store = db.store().await;
    assert_eq!(store.compiled_template("k").await.unwrap(), None);
    store.keep_compiled_template("k", b"blob\0\xff", at(0)).await.unwrap();
    store.keep_compiled_template("k", b"blob\0\xff", at(0)).await.unwrap();
    assert_eq!(store.compiled_template("k").await.unwrap().unwrap(), b"blob\0\xff");
    for n in 1..6 {
        let key = format!("k{n}");
        store.keep_compiled_within(250, &key, &[n; 100], at(n.into())).await.unwrap();
    }
    let mut left = Vec::new();
    for key in ["k", "k1", "k2", "k3", "k4", "k5"] {
        left.extend(store.compiled_template(key).await.unwrap().map(|_| key));
    }
    assert_eq!(left, ["k4", "k5"], "the newest that fit together");
    store.keep_compiled_within(10, "huge", &[0; 100], at(9)).await.unwrap();
    assert!(store.compiled_template("huge").await.unwrap().is_some(), "what was just made stays");
}
