//! Hostile templates, run as a server runs them: in children of the real binary.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use stampede_render::Merged;
use stampede_render::compiled::{Compiled, Typeset};
use stampede_template::sandbox::{Error, Limits};
use stampede_template::{Bundle, EventData, Sandbox, shipped};
use stampede_testkit::eventually;

use crate::{PATIENCE, STAMPEDE};

fn sandbox(limits: Limits) -> Sandbox {
    Sandbox::new(PathBuf::from(STAMPEDE), limits)
}

fn patient() -> Sandbox {
    sandbox(patient_limits())
}

async fn compile(sandbox: &Sandbox, source: &str) -> Result<(), Error> {
    let bundle = Bundle::of_source(source).unwrap();
    sandbox.compile(&bundle, &EventData::sample()).await.map(drop)
}

fn a4() -> &'static Bundle {
    &shipped()[0].bundle
}

#[tokio::test]
async fn a_good_template_is_compiled_as_without_a_sandbox() {
    let sandbox = patient();
    sandbox.warm().await.unwrap();
    let event = EventData::sample();
    let published = sandbox.compile(a4(), &event).await.unwrap();
    assert!(published == stampede_template::compile(a4(), &event).unwrap());
}

#[tokio::test]
async fn an_endless_loop_is_stopped_while_others_go_on() {
    let sandbox = sandbox(Limits { time: Duration::from_secs(8), ..Limits::default() });
    let looping = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { compile(&sandbox, "#let x = 0\n#while true { x = calc.rem(x + 1, 7) }").await }
    });
    let deep = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { compile(&sandbox, "#{ let a = 1; while a > 0 { a += 1 } }").await }
    });
    // Typst has a limit of its own for plain loops; one of the two ways must end each.
    for result in [looping.await.unwrap(), deep.await.unwrap()] {
        match result {
            Err(Error::TimedOut(_)) => {}
            Err(Error::Template(mistakes)) => {
                let message = &mistakes[0].message;
                assert!(
                    message.contains("infinite") || message.contains("always true"),
                    "{message}"
                );
                assert!(mistakes[0].line.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
    sandbox.compile(a4(), &EventData::sample()).await.unwrap();
}

#[tokio::test]
async fn a_template_that_takes_too_long_is_killed_in_time() {
    let sandbox = sandbox(Limits { time: Duration::from_secs(2), ..Limits::default() });
    let started = Instant::now();
    assert_eq!(compile(&sandbox, SLOW).await, Err(Error::TimedOut(Duration::from_secs(2))));
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn only_processor_time_is_held_against_a_template() {
    let limits = Limits { time: Duration::from_secs(1), ..Limits::default() };
    let sandbox = sandbox(Limits { patience: Duration::from_secs(120), ..limits });
    let request = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { compile(&sandbox, SLOW).await }
    });
    let child =
        eventually(PATIENCE, || async { children().first().copied().ok_or("no child") }).await;
    // A child that does not run for a while, as on a machine that does other things.
    signal(child, rustix::process::Signal::STOP);
    let stopped = Instant::now();
    eventually(PATIENCE, || async { (stopped.elapsed() > 3 * limits.time).then_some(()) }).await;
    assert!(!request.is_finished());
    signal(child, rustix::process::Signal::CONT);
    assert_eq!(request.await.unwrap(), Err(Error::TimedOut(limits.time)));

    // One that does not run at all is given up, and the template is not blamed.
    let sandbox = self::sandbox(Limits { patience: Duration::from_secs(2), ..patient_limits() });
    let request = tokio::spawn(async move { compile(&sandbox, SLOW).await });
    let child =
        eventually(PATIENCE, || async { children().first().copied().ok_or("no child") }).await;
    signal(child, rustix::process::Signal::STOP);
    let error = request.await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Unavailable(why) if why.contains("2s")), "{error:?}");
    eventually(PATIENCE, || async { no_child() }).await;
}

#[tokio::test]
async fn a_child_that_is_told_to_stop_is_not_held_against_its_template() {
    let sandbox = patient();
    for told in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let request = tokio::spawn({
            let sandbox = sandbox.clone();
            async move { compile(&sandbox, SLOW).await }
        });
        let child =
            eventually(PATIENCE, || async { children().first().copied().ok_or("no child") }).await;
        signal(child, told);
        let error = request.await.unwrap().unwrap_err();
        assert_eq!(error, Error::Unavailable("it was told to stop".into()), "{told:?}");
        eventually(PATIENCE, || async { no_child() }).await;
    }
}

/// A template that takes minutes.
const SLOW: &str =
    "#for a in range(4000) { for b in range(4000) { for c in range(4000) { let d = a * b * c } } }";

fn signal(child: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(child as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn a_template_that_eats_memory_is_stopped() {
    let sandbox = sandbox(Limits { memory: 512 << 20, ..patient_limits() });
    let hungry =
        "#let all = ()\n#for i in range(9000) { all.push(\"x\" * 1000000 + str(i)) }\n#all.len()";
    let error = compile(&sandbox, hungry).await.unwrap_err();
    assert_eq!(error, Error::TooMuchMemory(512 << 20));
    assert!(error.to_string().contains("512 MB"), "{error}");
    sandbox.compile(a4(), &EventData::sample()).await.unwrap();
}

#[tokio::test]
async fn a_million_pages_are_refused_or_stopped() {
    let sandbox = sandbox(Limits { time: Duration::from_secs(20), ..Limits::default() });
    let error = compile(&sandbox, "#for _ in range(1000000) { pagebreak(weak: false) }").await;
    match error.unwrap_err() {
        Error::TimedOut(_) | Error::TooMuchMemory(_) => {}
        Error::Template(mistakes) => assert!(mistakes[0].message.contains("pages"), "{mistakes:?}"),
        other => panic!("{other:?}"),
    }
    let error = compile(&sandbox, "#for _ in range(30) { pagebreak() }").await.unwrap_err();
    assert!(error.to_string().contains("31 pages, more than 20"), "{error}");
}

#[tokio::test]
async fn deep_recursion_is_an_error_or_takes_down_only_its_child() {
    let sandbox = patient();
    let error = compile(&sandbox, "#let f(n) = f(n + 1)\n#f(0)").await.unwrap_err();
    assert!(matches!(&error, Error::Template(m) if m[0].line.is_some()), "{error:?}");
    let nested = format!("#{}1{}", "(".repeat(200_000), ")".repeat(200_000));
    let error = compile(&sandbox, &nested).await.unwrap_err();
    assert!(matches!(error, Error::Template(_) | Error::Crashed(_)), "{error:?}");
    sandbox.compile(a4(), &EventData::sample()).await.unwrap();
}

#[tokio::test]
async fn corrupt_fonts_and_images_are_named() {
    let sandbox = patient();
    for (name, source, bytes) in [
        ("brand.ttf", "hi", b"not a font".to_vec()),
        ("logo.svg", "#image(\"logo.svg\")", b"<svg".to_vec()),
        ("logo.pdf", "#image(\"logo.pdf\")", b"%PDF-1.7 nothing".to_vec()),
    ] {
        let files = BTreeMap::from([
            ("template.typ".to_owned(), source.as_bytes().to_vec()),
            (name.to_owned(), bytes),
        ]);
        let bundle = Bundle::new(files).unwrap();
        let error = sandbox.compile(&bundle, &EventData::sample()).await.unwrap_err();
        assert!(matches!(error, Error::Template(_)), "{name}: {error:?}");
    }
    // A header that says 8 × 8 pixels, and data that is none.
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x08\0\0\0\x08\x08\x06\0\0\0".to_vec();
    png.extend([0; 60]);
    let files = BTreeMap::from([
        ("template.typ".to_owned(), b"#image(\"a.png\")".to_vec()),
        ("a.png".to_owned(), png),
    ]);
    let error = sandbox.compile(&Bundle::new(files).unwrap(), &EventData::sample()).await;
    assert!(matches!(error, Err(Error::Template(_))), "{error:?}");
}

/// Small files that would become large: each is refused, or stopped at the limits of its child.
#[tokio::test]
async fn pictures_and_sources_that_unpack_to_gigabytes_take_down_nothing_but_a_child() {
    let sandbox = sandbox(Limits { time: Duration::from_secs(20), ..Limits::default() });
    let mut laughs = "<!DOCTYPE svg [<!ENTITY a0 \"haha\">".to_owned();
    for n in 1..40 {
        laughs += &format!("<!ENTITY a{n} \"{}\">", format!("&a{};", n - 1).repeat(10));
    }
    laughs +=
        "]><svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><text>&a39;</text></svg>";
    // Its header says 100,000 × 100,000 pixels, and its name hides what it is.
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    png.extend([100_000_u32.to_be_bytes(), 100_000_u32.to_be_bytes()].concat());
    png.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
    for (name, source, bytes) in [
        ("laughs.svg", "#image(\"laughs.svg\")", laughs.into_bytes()),
        ("large.dat", "#image(\"large.dat\", format: \"png\")", png),
        ("a.woff2", "#set text(font: \"x\")\n#for i in range(1000000000) { i }", Vec::new()),
        ("a.txt", "#set page(width: 99999999mm, height: 99999999mm)\nx", Vec::new()),
        ("b.txt", "#let x = range(2000000000)\n#x.len()", Vec::new()),
    ] {
        let files = BTreeMap::from([
            ("template.typ".to_owned(), source.as_bytes().to_vec()),
            (name.to_owned(), bytes),
        ]);
        let bundle = Bundle::new(files).unwrap();
        let error = sandbox.compile(&bundle, &EventData::sample()).await.unwrap_err();
        assert!(!matches!(error, Error::Unavailable(_)), "{name}: {error:?}");
    }
    sandbox.compile(a4(), &EventData::sample()).await.unwrap();
}

#[tokio::test]
async fn a_ticket_is_stamped_in_a_child_as_in_this_process() {
    let sandbox = patient();
    let event = EventData::sample();
    let published = sandbox.compile(a4(), &event).await.unwrap();
    let ticket = event.sample_ticket();
    let apart = sandbox.stamp(&published.blob, &ticket).await.unwrap();
    assert!(apart == stampede_template::stamp_blob(&published.blob, &ticket).unwrap());
    let error = sandbox.stamp(b"no template", &ticket).await.unwrap_err();
    assert!(matches!(error, Error::Template(_)), "{error:?}");
}

#[tokio::test]
async fn a_dropped_request_leaves_no_process_behind() {
    let sandbox = patient();
    let slow =
        "#for a in range(4000) { for b in range(4000) { for c in range(4000) { let d = a } } }";
    let bundle = Bundle::of_source(slow).unwrap();
    let event = EventData::sample();
    tokio::select! {
        _ = sandbox.compile(&bundle, &event) => panic!("it cannot end"),
        () = eventually(PATIENCE, || async { some_child() }) => {}
    }
    eventually(PATIENCE, || async { no_child() }).await;
}

#[tokio::test]
async fn a_child_sees_nothing_of_its_parent() {
    let inherited = descriptors(std::process::id());
    let _file = tempfile::tempfile().unwrap();
    let _socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sandbox = patient();
    sandbox.warm().await.unwrap();
    let children = children();
    let [child] = children[..] else { panic!("{children:?}") };
    let environment = std::fs::read_to_string(format!("/proc/{child}/environ")).unwrap();
    let names: Vec<&str> = environment.split('\0').filter(|v| !v.is_empty()).collect();
    assert!(names.iter().all(|variable| variable.starts_with("MIMALLOC_")), "{names:?}");
    let open = descriptors(child);
    // A test runner leaves some of its own open to everybody below it; ours are not among them.
    let strange: Vec<_> = open[3..].iter().filter(|file| !inherited.contains(file)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    let folder = std::fs::read_link(format!("/proc/{child}/cwd")).unwrap();
    assert_eq!(folder, PathBuf::from("/"));
}

#[tokio::test]
async fn a_killed_child_is_replaced() {
    let sandbox = patient();
    sandbox.warm().await.unwrap();
    for child in children() {
        let pid = rustix::process::Pid::from_raw(child as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    eventually(PATIENCE, || async { no_child() }).await;
    sandbox.compile(a4(), &EventData::sample()).await.unwrap();
}

#[tokio::test]
async fn a_ticket_that_is_typeset_comes_back_as_pdf_and_as_picture() {
    let sandbox = patient();
    let bundle = Bundle::of_source(
        "#qr(40mm)\n#if ticket(\"seat\") == none [Free seating] else [Seat #ticket(\"seat\")]",
    )
    .unwrap();
    let event = EventData::sample();
    let published = sandbox.compile(&bundle, &event).await.unwrap();
    let reason = published.slow_because.unwrap();
    assert!(reason.starts_with("template.typ:2:5: reads ticket"), "{reason}");
    let Compiled::Typeset(template) = stampede_render::blob::decode(&published.blob).unwrap()
    else {
        panic!("it is not typeset")
    };
    let mut ticket = event.sample_ticket();
    ticket.seat = None;
    let pdf = sandbox.typeset(&template, &ticket).await.unwrap();
    assert!(stampede_testkit::pdf_text(&pdf).contains("Free seating"));
    let mut merged = Merged::new(Vec::new(), "One");
    let after = merged.continuation(None).unwrap();
    let piece = sandbox.merge_typeset(&template, &ticket, &after).await.unwrap();
    merged.append(None, piece).unwrap();
    assert!(stampede_testkit::pdf_text(&merged.finish().unwrap()).contains("Free seating"));
    let png = sandbox.preview_png(&pdf, 0, 50.0).await.unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    let error = sandbox.preview_png(b"no pdf", 0, 50.0).await.unwrap_err();
    assert!(matches!(error, Error::Template(_)), "{error:?}");
    let damaged = Typeset { files: Vec::new(), ..template };
    let error = sandbox.typeset(&damaged, &ticket).await.unwrap_err();
    assert!(matches!(error, Error::Template(_)), "{error:?}");
}

fn patient_limits() -> Limits {
    let long = Duration::from_secs(60);
    Limits { time: long, patience: 4 * long, ..Limits::default() }
}

/// What a process has open, by number.
fn descriptors(pid: u32) -> Vec<PathBuf> {
    let mut open: Vec<(u32, PathBuf)> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, std::fs::read_link(&path).ok()?))
        })
        .collect();
    open.sort();
    open.into_iter().map(|(_, file)| file).collect()
}

fn some_child() -> Result<(), String> {
    if children().is_empty() { Err("no child runs".into()) } else { Ok(()) }
}

fn no_child() -> Result<(), String> {
    let left = children();
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?} still run")) }
}

/// Processes below this one that run templates. Every test has a process of its own.
fn children() -> Vec<u32> {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let fields: Vec<&str> = rest.split_whitespace().collect();
            // A zombie waits only for its parent to look.
            fields.first() != Some(&"Z") && fields.get(1) == Some(&me.as_str())
        })
        .collect()
}
