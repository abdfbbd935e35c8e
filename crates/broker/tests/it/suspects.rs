//! Suspects shared over Redis.

use crate::stage::{Stage, connect};

#[tokio::test]
async fn strikes_are_seen_by_all_and_end_with_a_success_or_an_operator() {
    let stage = Stage::start().await;
    let (elsewhere, _) = connect(&stage.redis.url()).await;
    let (here, there) = (stage.broker.suspects(), elsewhere.suspects());
    here.suspect("template:a", "its worker died").await.unwrap();
    assert_eq!(here.strike("template:b", "out of memory").await.unwrap(), 1);
    assert_eq!(there.strike("template:b", "crashed").await.unwrap(), 2);
    there.suspect("template:b", "its worker died").await.unwrap();
    let all = there.all().await.unwrap();
    let seen: Vec<_> =
        all.iter().map(|one| (one.name.as_str(), one.strikes, one.reason.as_str())).collect();
    assert_eq!(seen, [("template:a", 0, "its worker died"), ("template:b", 2, "crashed")]);
    assert!(all[0].expires_in.as_secs() <= 600 && all[1].expires_in.as_secs() > 80_000, "{all:?}");

    here.absolve("template:b").await.unwrap();
    let all = here.all().await.unwrap();
    assert_eq!(all[1].strikes, 0);
    let left = all[1].expires_in.as_secs();
    assert!((500..=600).contains(&left), "it stays suspected for a while: {all:?}");
    assert!(there.lift("template:b").await.unwrap() && !there.lift("template:b").await.unwrap());
    assert_eq!(here.all().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_suspect_without_a_time_gets_one_and_one_that_expired_is_gone() {
    let stage = Stage::start().await;
    let suspects = stage.broker.suspects();
    for name in ["template:a", "template:b"] {
        suspects.suspect(name, "its worker died").await.unwrap();
    }
    stage.redis.cli(&["PERSIST", "stampede:suspect:{template:a}"]);
    stage.redis.cli(&["DEL", "stampede:suspect:{template:b}"]);
    assert_eq!(suspects.all().await.unwrap().len(), 1);
    let all = suspects.all().await.unwrap();
    assert!(all[0].expires_in.as_secs() > 500, "{all:?}");
    assert_eq!(stage.redis.cli(&["SMEMBERS", "stampede:suspects"]).trim(), "template:a");
}
