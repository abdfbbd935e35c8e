//! Rules that the tables enforce against any client of the database.

use stampede_model::{Template, TemplateFiles, TemplateId};
use stampede_store::NewRevision;

use crate::backends::Database;
use crate::suite::samples::at;

on_every_sql_backend!(a_revision_is_never_changed);

async fn a_revision_is_never_changed(db: Database) {
    let store = db.store().await;
    let template = Template {
        id: TemplateId::generate(),
        owner: "ann".into(),
        name: "A".into(),
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    };
    let files = [("template.typ".to_owned(), b"one".to_vec())];
    let files = TemplateFiles::new(files.into()).unwrap();
    let first = NewRevision { files, author: "ann".into(), note: "first".into() };
    store.insert_template(&template, &first).await.unwrap();
    sqlx::any::install_default_drivers();
    let stranger = sqlx::AnyPool::connect(&db.url).await.unwrap();
    let change = sqlx::query("UPDATE template_revisions SET note = 'forged'");
    let error = change.execute(&stranger).await.unwrap_err();
    assert!(error.to_string().contains("never changed"), "{error}");
    let (found, _) = store.template_files(template.id, None).await.unwrap().unwrap();
    assert_eq!(found.note, "first");
}
