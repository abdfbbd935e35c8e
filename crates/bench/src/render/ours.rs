//! Our own ways to make a ticket: stamping, and Typst. Both use the A4 design and the same guests.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use stampede_model::TicketDocument;
use stampede_render::compiled::{Compiled, Typeset};
use stampede_render::{Deflate, Prepared, Stamper, Values};
use stampede_template::{EventData, compile, shipped, typeset};

use super::{BenchRender, Cost, process_cpu, thread_cpu};

/// A way to make a ticket in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Stamped,
    Deflated,
    Typst,
}

/// Names in several scripts and of several lengths.
const NAMES: &[&str] = &[
    "Amelia Hartmann",
    "Иван Петров",
    "Zoë O’Brien",
    "Łukasz Kowalski",
    "Мария Александровна Белова",
    "José García",
    "Ольга Щукина",
    "Nguyễn Thị Ánh",
    "Άννα Παπαδοπούλου",
    "Maximilian Featherstonehaugh",
];

pub(super) struct Ours {
    template: Arc<Prepared>,
    slow: Typeset,
    tickets: Vec<TicketDocument>,
}

impl Ours {
    pub(super) fn new() -> Result<Self> {
        let design = shipped().first().context("there is no shipped design")?;
        let event = EventData::sample();
        let published = compile(&design.bundle, &event).map_err(|e| anyhow!("{e:?}"))?;
        let Compiled::Stamped(stamped) = stampede_render::blob::decode(&published.blob)? else {
            bail!("the A4 design is not stamped")
        };
        let mut files: Vec<(String, Vec<u8>)> =
            design.bundle.files().iter().map(|(n, b)| (n.clone(), b.clone())).collect();
        files.push(("event.json".into(), serde_json::to_vec(&event)?));
        let slow = Typeset { reason: "to compare".into(), files };
        let tickets = (0..1_000).map(|index| ticket(&event, index)).collect();
        Ok(Self { template: Arc::new(Prepared::new(*stamped)?), slow, tickets })
    }

    pub(super) fn measure(&mut self, way: Way, options: &BenchRender) -> Result<Cost> {
        match way {
            Way::Stamped => self.stamp(Deflate::Off, options.tickets),
            Way::Deflated => self.stamp(Deflate::On, options.tickets),
            Way::Typst => self.typeset(options.typst),
        }
    }

    fn stamp(&self, deflate: Deflate, count: u32) -> Result<Cost> {
        let mut stamper = Stamper::new(self.template.clone()).with_deflate(deflate);
        let fields: Vec<_> = self.tickets.iter().map(TicketDocument::fields).collect();
        let fields: Vec<Vec<(&str, &str)>> =
            fields.iter().map(|of| of.iter().map(|(n, v)| (*n, v.as_ref())).collect()).collect();
        let (mut pdf, mut bytes) = (Vec::new(), 0);
        let mut all = |count: u32, bytes: &mut usize| -> Result<()> {
            for index in 0..count as usize {
                let number = index % self.tickets.len();
                let values = Values { id: &self.tickets[number].id, fields: &fields[number] };
                stamper.stamp(&values, &mut pdf)?;
                *bytes += black_box(&pdf).len();
            }
            Ok(())
        };
        all(100, &mut bytes)?;
        bytes = 0;
        let before = thread_cpu()?;
        all(count, &mut bytes)?;
        let seconds = thread_cpu()? - before;
        Ok(Cost { seconds: seconds / f64::from(count), bytes: bytes as f64 / f64::from(count) })
    }

    /// Typst uses several threads, so the whole process counts; nothing else runs in it.
    fn typeset(&self, count: u32) -> Result<Cost> {
        let mut bytes = 0;
        let one = |index: usize| -> Result<usize> {
            let ticket = &self.tickets[index % self.tickets.len()];
            let pdf = typeset(&self.slow, ticket).map_err(|e| anyhow!("{e:?}"))?;
            Ok(black_box(pdf).len())
        };
        for index in 0..8 {
            one(500 + index)?;
        }
        let (before, _) = process_cpu()?;
        let started = Instant::now();
        for index in 0..count as usize {
            bytes += one(index)?;
        }
        let seconds = process_cpu()?.0 - before;
        if seconds <= 0.0 {
            bail!("{count} tickets in {:?} are too few to measure", started.elapsed());
        }
        Ok(Cost { seconds: seconds / f64::from(count), bytes: bytes as f64 / f64::from(count) })
    }
}

fn ticket(event: &EventData, index: u32) -> TicketDocument {
    let name = NAMES[index as usize % NAMES.len()];
    TicketDocument {
        id: format!("0198f3a2-7c41-7d20-9b1e-{index:012}"),
        index: index + 1,
        name: format!("{name} {index}"),
        seat: Some(format!("Row {}, Seat {}", index / 40 + 1, index % 40 + 1)),
        // Signed tokens are 120 letters of base32.
        code: format!("{:A<106}{index:014}", "STAMPEDE").replace(['0', '1', '8', '9'], "B"),
        ..event.sample_ticket()
    }
}
