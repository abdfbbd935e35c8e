//! `/api/stickers`: stickers are drawn, read and listed.
//!
//! | file | holds |
//! |---|---|
//! | this one | the routes |
//! | `forms.rs` | bodies, read into orders |
//! | `shown.rs` | what is answered |

mod forms;
mod shown;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use stampede_studio::{Drawn, LookedUp, Sticker, StickerName, Variant};
use stampede_wire::stickers::{StickerPool, StickerVariant, StickerVariants, Stickers};

use self::forms::{StickerBatchForm, StickerForm, Wanted as WantedStickers};
pub(crate) use self::shown::FileName;
use self::shown::{DrawnAnswer, StickerFile, accepted, all, file, pool};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::{Body, LargeBody};
use crate::describe::Sent;
use crate::forms::Mistakes;
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::ranges::{Sendable, Wanted};
use crate::routes::pdf::part_of;

/// Most stickers of a request: as many as Telegram takes when a set is made.
const MOST: usize = 50;

/// Draws a sticker and answers with its file; with `variants`, draws several and answers with links.
pub(crate) async fn draw(
    State(app): State<App>,
    _: Writer,
    Body(form, _held): Body<StickerForm>,
) -> Result<Sent<DrawnAnswer>, Problem> {
    let (wanted, priority) = forms::read(&app.studio, form)?;
    match wanted {
        WantedStickers::One(order) => match app.studio.draw(&order, priority).await? {
            Drawn::Ready(sticker) => Ok(Sent::new(file(sticker))),
            Drawn::Later(_) => Ok(Sent::new(accepted(&order))),
        },
        WantedStickers::Several(orders) => {
            let done = app.studio.draw_all(&orders, priority).await?;
            Ok(Sent::new(Json(all(&orders, done)).into_response()))
        }
    }
}

/// Draws several stickers. There is room for all of them, or none is drawn; one that cannot be drawn leaves the others alone.
pub(crate) async fn draw_batch(
    State(app): State<App>,
    _: Writer,
    LargeBody(form, _held): LargeBody<StickerBatchForm>,
) -> Result<Json<Stickers>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let (orders, priority) = forms::read_batch(&mut mistakes, &app.studio, form);
    let orders = mistakes.finish(orders)?;
    let done = app.studio.draw_all(&orders, priority).await?;
    Ok(Json(all(&orders, done)))
}

/// The variants that ship, each with a picture.
pub(crate) async fn variants(
    State(app): State<App>,
    _: Caller,
) -> Result<Json<StickerVariants>, Problem> {
    let pictured = app.studio.pictured_variants().await;
    let variant = |(index, (variant, picture)): (u32, (Variant, Option<StickerName>))| {
        let Variant { name, look, config_id } = variant;
        let picture = picture.map(|name| name.path());
        StickerVariant { index, name, config_id, look, picture }
    };
    Ok(Json(StickerVariants { variants: (0..).zip(pictured).map(variant).collect() }))
}

/// The file of a sticker, or 409 with Retry-After until a worker has drawn it.
pub(crate) async fn read(
    State(app): State<App>,
    _: Caller,
    Id(FileName(name)): Id<FileName>,
    wanted: Wanted,
) -> Result<Sent<StickerFile>, Problem> {
    let Sticker { name, bytes } = match app.studio.look_up(name).await? {
        LookedUp::Ready(sticker) => sticker,
        LookedUp::NotYet => {
            return Err(Problem::new(Code::NotReady, "the sticker is not drawn yet").retry_after(1));
        }
        LookedUp::Failed(reason) => {
            let detail = format!("the sticker could not be drawn: {reason}");
            return Err(Problem::new(Code::Failed, detail));
        }
        LookedUp::Unknown => return Err(Problem::not_found("Sticker", &name)),
    };
    let file = Sendable {
        kind: name.format.media_type(),
        disposition: &format!("inline; filename=\"sticker-{name}\""),
        // The name follows from everything that the bytes depend on.
        cache: "private, max-age=31536000, immutable",
        tag: Some(&format!("\"{name}\"")),
        length: Some(bytes.len() as u64),
    };
    Ok(Sent::new(file.answer(&wanted, |part| part_of(bytes.to_vec(), part))))
}

/// The pool of the process that answers.
pub(crate) async fn statistics(State(app): State<App>, _: Caller) -> Json<StickerPool> {
    Json(pool(app.studio.stats().await))
}
