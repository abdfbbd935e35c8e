//! The example `sticker-bot`: a hundred users write to it, and Telegram, which is ours, gets their sticker sets.

use std::time::Duration;

use stampede_example_sticker_bot::{Options, run};
use stampede_testkit::{ADMIN_KEY, App, StickerTelegram, eventually};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::start;

/// The user who goes first.
const VIP: i64 = 1_099;

/// A running bot, and the way to end it.
struct Bot {
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Bot {
    fn start(app: &App, telegram: &StickerTelegram, variants: &[&str]) -> Self {
        let options = Options {
            telegram_token: "1:token".to_owned(),
            telegram_api_url: telegram.url(),
            stampede_url: app.url(),
            stampede_key: ADMIN_KEY.to_owned(),
            vips: vec![VIP],
            variants: variants.iter().map(|name| (*name).to_owned()).collect(),
            desks: 4,
            queue: 1_000,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            run(options, stopped).await
        });
        Self { stop, task }
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

/// A node whose pool takes one sticker at a time, so that the bot meets refusals.
async fn narrow() -> App {
    start(&[("WORKER_MODE", "api"), ("WORKER_POOL_SIZE", "1"), ("WORKER_QUEUE_SIZE", "16")]).await
}

#[tokio::test]
async fn a_hundred_users_get_their_stickers_and_read_their_place_meanwhile() {
    let (app, telegram) =
        (narrow().await, StickerTelegram::start(Duration::from_millis(100)).await);
    let users: Vec<i64> = (1_000..1_100).collect();
    for user in &users {
        telegram.writes(*user, &format!("User {user} 👋"));
    }
    let bot = Bot::start(&app, &telegram, &[]);
    let all_told = async || {
        let has_link = |user: &i64| {
            let messages = telegram.messages_of(*user);
            messages.iter().flatten().any(|text| text.contains("t.me/addstickers/"))
        };
        users.iter().all(has_link).then_some(())
    };
    eventually(Duration::from_secs(240), all_told).await;
    bot.end().await;

    assert_eq!(telegram.wrong(), Vec::<String>::new());
    for user in &users {
        let [set] = &telegram.sets_of(*user)[..] else { panic!("{user} has no set, or several") };
        assert_eq!((set.files.len(), set.title.as_str()), (8, &*format!("User {user} 👋")));
        assert_eq!(telegram.stickers_of(*user), 1);
        let [message] = &telegram.messages_of(*user)[..] else {
            panic!("{user}: several messages")
        };
        let link = format!("Your stickers: https://t.me/addstickers/{}", set.name);
        assert_eq!(message.last(), Some(&link));
    }
    // The hundredth who wrote is a VIP: served among the first, though refusals for speed may hold up one order for seconds.
    let first = telegram.sets().iter().position(|set| set.user == VIP).unwrap();
    assert!(first < 30, "{first}");
    // Who waits reads a place that becomes smaller.
    let places = |user: i64| -> Vec<usize> {
        let messages = telegram.messages_of(user);
        let place =
            |text: &String| text.strip_prefix("You are number ")?.split(' ').next()?.parse().ok();
        messages.iter().flatten().filter_map(place).collect()
    };
    let told: Vec<Vec<usize>> = users.iter().map(|user| places(*user)).collect();
    assert!(told.iter().filter(|places| !places.is_empty()).count() > 50, "{told:?}");
    assert!(told.iter().any(|places| places.len() > 1), "{told:?}");
    assert!(told.iter().all(|places| places.windows(2).all(|two| two[0] > two[1])), "{told:?}");
    if let Some(folder) = std::env::var_os("STAMPEDE_STICKER_FILES") {
        std::fs::create_dir_all(&folder).unwrap();
        for set in telegram.sets() {
            for (index, file) in set.files.iter().enumerate() {
                let name = format!("bot-{}-{index}.tgs", set.user);
                std::fs::write(std::path::Path::new(&folder).join(name), file).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn the_bot_answers_inline_queries_and_tells_why_a_text_cannot_be_drawn() {
    let (app, telegram) = (narrow().await, StickerTelegram::start(Duration::ZERO).await);
    let bot = Bot::start(&app, &telegram, &["neon", "ink"]);
    let answer = async |query: &str| {
        eventually(Duration::from_secs(60), async || telegram.answer_to(query)).await
    };
    // Whoever has not spoken to the bot is asked to do so.
    telegram.types(7, "stranger", "Hello");
    assert_eq!(answer("stranger").await["button"]["text"], "Press Start first");

    telegram.writes(7, "/start");
    eventually(Duration::from_secs(60), async || {
        (!telegram.messages_of(7).is_empty()).then_some(())
    })
    .await;
    assert!(telegram.messages_of(7)[0][0].starts_with("Send me a text"));
    for (id, text) in [("a", "H"), ("b", "He"), ("c", "Hello")] {
        telegram.types(7, id, text);
    }
    let answered = answer("c").await;
    assert_eq!(answered["results"].as_array().unwrap().len(), 2, "{answered}");
    assert_eq!((telegram.answer_to("a"), telegram.answer_to("b")), (None, None));

    // The same text as a message is the same set.
    telegram.writes(7, "Hello");
    telegram.writes(8, "\u{13000}");
    let last = async |user: i64, count: usize| {
        eventually(Duration::from_secs(60), async || {
            let messages = telegram.messages_of(user);
            (messages.len() == count).then(|| messages[count - 1][0].clone())
        })
        .await
    };
    assert!(last(7, 2).await.contains("t.me/addstickers/"));
    assert_eq!(telegram.sets_of(7).len(), 1);
    let told = last(8, 1).await;
    assert!(told.contains("U+13000"), "{told}");
    bot.end().await;
    assert_eq!(telegram.wrong(), Vec::<String>::new());
}
