//! Which Redis is accepted, and what is said about one that is not.

use stampede_broker::{Broker, Config, Error};
use stampede_testkit::Redis;

use crate::stage::Stage;

async fn refusal(url: String) -> Error {
    match Broker::connect(&Config::new(url)).await {
        Ok(_) => panic!("should be refused"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_redis_that_may_evict_jobs_is_refused_with_the_remedy() {
    let redis = Redis::with_config(&[("maxmemory-policy", "allkeys-lru")]).await;
    let error = refusal(redis.url()).await;
    assert!(matches!(&error, Error::EvictionPolicy { policy, .. } if policy == "allkeys-lru"));
    assert!(error.to_string().contains("CONFIG SET maxmemory-policy noeviction"), "{error}");
    assert!(!error.is_outage());
}

#[tokio::test]
async fn an_unreachable_redis_is_named_without_its_password() {
    let mut redis = Redis::start().await;
    redis.stop().await;
    let error = refusal(format!("redis://ann:secret@127.0.0.1:{}/2", redis.port())).await;
    let text = error.to_string();
    assert!(text.contains(&format!("127.0.0.1:{}", redis.port())), "{text}");
    assert!(!text.contains("secret") && !format!("{error:?}").contains("secret"), "{error:?}");
    assert!(text.contains("REDIS_URL"), "{text}");
    assert!(error.is_outage());
}

#[tokio::test]
async fn listeners_hear_what_is_published() {
    let stage = Stage::start().await;
    let client = redis::Client::open(stage.redis.url()).unwrap();
    let listening = tokio::task::spawn_blocking(move || {
        let mut connection = client.get_connection().unwrap();
        let mut listener = connection.as_pubsub();
        listener.subscribe("ticket:completed").unwrap();
        [(); 2].map(|()| listener.get_message().unwrap().get_payload::<String>().unwrap())
    });
    stampede_testkit::eventually(crate::stage::SOON, || async {
        let heard: (String, i64) = stage.ask("PUBSUB NUMSUB ticket:completed").await;
        (heard.1 == 1).then_some(())
    })
    .await;
    let messages = [r#"{"ticket_id":1}"#, r#"{"ticket_id":2}"#].map(str::to_owned);
    stage.broker.publish("ticket:completed", &messages).await.unwrap();
    assert_eq!(listening.await.unwrap(), [r#"{"ticket_id":1}"#, r#"{"ticket_id":2}"#]);
}
