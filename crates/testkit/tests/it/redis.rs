//! What a test may rely on of its redis-server.

use stampede_testkit::Redis;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Says one line and reads everything up to the server's goodbye.
pub(crate) async fn ask(port: u16, line: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn it_keeps_its_port_and_data_over_a_restart_and_a_kill() {
    let mut redis = Redis::start().await;
    let port = redis.port();
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{port}"));
    assert!(ask(port, "SET a 1").await.unwrap().starts_with("+OK"));
    redis.restart().await;
    assert!(ask(port, "INCR a").await.unwrap().starts_with(":2"));
    redis.kill();
    assert!(ask(port, "PING").await.is_err());
    redis.start_again().await;
    assert!(ask(port, "INCR a").await.unwrap().starts_with(":3"));
}

#[tokio::test]
async fn it_never_evicts_unless_a_test_wants_it_to() {
    let (usual, odd) =
        tokio::join!(Redis::start(), Redis::with_config(&[("maxmemory-policy", "allkeys-lru")]),);
    let policy = "CONFIG GET maxmemory-policy";
    assert!(ask(usual.port(), policy).await.unwrap().contains("noeviction"));
    assert!(ask(odd.port(), policy).await.unwrap().contains("allkeys-lru"));
}

#[tokio::test]
#[should_panic(expected = "redis-server does not start")]
async fn a_wrong_setting_is_told_from_the_servers_log() {
    Redis::with_config(&[("no-such-setting", "1")]).await;
}
