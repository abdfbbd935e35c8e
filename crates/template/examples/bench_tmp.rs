//! tmp
use stampede_model::TicketDocument;
use stampede_template::{Template, Typesetter};
#[allow(clippy::print_stdout)]
fn main() {
    let n: u32 = std::env::args().nth(1).map_or(500, |n| n.parse().unwrap_or(500));
    let t = Typesetter::new(Template::default_ticket());
    let rss = || {
        std::fs::read_to_string("/proc/self/status")
            .unwrap_or_default()
            .lines()
            .find(|l| l.starts_with("VmRSS"))
            .unwrap_or_default()
            .to_owned()
    };
    let mut start = std::time::Instant::now();
    let mut size = 0;
    for i in 0..n {
        let d = TicketDocument {
            id: format!("0198f3a2-7c41-7d20-9b1e-{i:012}"),
            code: format!("0198f3a2-7c41-7d20-9b1e-{i:012}"),
            index: i,
            name: format!("Guest Number {i}"),
            seat: Some(format!("Row {i}")),
            price: Some("€48.00".into()),
            event: "Midsummer Night Festival".into(),
            location: "Tempelhofer Feld, Berlin".into(),
            starts: Some("Saturday, 20 June 2026, 19:30".into()),
            primary: "#667eea".into(),
            secondary: "#764ba2".into(),
        };
        size += t.render(&d).map_or(0, |b| b.len());
        if i == 0 {
            println!("cold {:?}", start.elapsed());
            start = std::time::Instant::now();
        }
        if i % (n / 8) == 0 {
            println!("{i} {} {:?}", rss(), start.elapsed() / (i + 1));
        }
    }
    println!("warm {:?} avg {} bytes", start.elapsed() / (n - 1), size / n as usize);
}
