//! Random scans, undone scans and changes of lists: every backend does what a simple model says.

use std::collections::BTreeMap;

use stampede_model::{
    Admission, AdmissionRules, CheckInList, Event, ListId, Occasion, Presented, ScanId, ScanKind,
    ScanResult, Ticket, TicketId, decide,
};
use stampede_store::{NewScan, Recorded, Scan, ScanFilter, Store, Undo};

use super::{entry, exit, offline};
use crate::backends::Database;
use crate::suite::samples::{Dice, at, ordered};

on_every_backend!(random_scans_do_what_the_model_says);

/// Groups of scans in one run.
const STEPS: u64 = 80;

/// The model: lists, states, and the answer of every nonce.
struct Model {
    lists: BTreeMap<ListId, AdmissionRules>,
    states: BTreeMap<(ListId, TicketId), Admission>,
    answers: BTreeMap<String, (ScanId, ScanResult)>,
    counted: BTreeMap<ScanId, (ListId, TicketId, ScanKind)>,
}

impl Model {
    /// The result of a scan; `None`: the nonce was used for something else.
    fn scan(&mut self, scan: &NewScan, list: ListId, shown: &Ticket, now: &Ticket) -> ScanResult {
        let nonce = scan.nonce.clone().unwrap();
        if let Some((_, result)) = self.answers.get(&nonce) {
            return *result;
        }
        let state = self.states.entry((list, now.id)).or_default();
        let presented = Presented {
            status: now.status,
            generation: now.generation,
            shown_generation: Some(shown.generation),
            key_is_revoked: false,
            is_blocked: false,
            batch: now.batch_id,
            seat: now.holder.seat.as_deref(),
        };
        let occasion = Occasion { kind: scan.kind, at: scan.at };
        let found = decide(Some(presented), &self.lists[&list], *state, occasion);
        let let_in =
            scan.offline.map_or(found == ScanResult::Ok, |sent| sent.verdict == ScanResult::Ok);
        let result = match scan.offline {
            Some(sent) if !let_in => sent.verdict,
            _ => found,
        };
        if let_in {
            *state = state.passed(scan.kind);
            self.counted.insert(scan.id, (list, now.id, scan.kind));
        }
        self.answers.insert(nonce, (scan.id, result));
        result
    }

    fn undo(&mut self, id: ScanId) -> bool {
        let Some((list, ticket, kind)) = self.counted.get(&id).copied() else { return false };
        let state = self.states.get_mut(&(list, ticket)).unwrap();
        let Some(after) = state.undone(kind) else { return false };
        *state = after;
        self.counted.remove(&id);
        true
    }
}

struct Run {
    store: Store,
    event: Event,
    model: Model,
    dice: Dice,
    /// Paper that is around: tickets as they were printed.
    paper: Vec<Ticket>,
    sent: Vec<(NewScan, ListId, Ticket)>,
}

async fn random_scans_do_what_the_model_says(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 6).await;
    let mut paper = Vec::new();
    for sold in &order.tickets {
        paper.push(super::ticket(&store, sold.id).await);
    }
    let model = Model {
        lists: [(ListId::main_of(event.id), AdmissionRules::main())].into(),
        states: BTreeMap::new(),
        answers: BTreeMap::new(),
        counted: BTreeMap::new(),
    };
    let mut run = Run { store, event, model, dice: Dice(2026), paper, sent: Vec::new() };
    for step in 0..STEPS {
        match run.dice.below(12) {
            0 => run.change_list(step).await,
            1 | 2 => run.undo(step).await,
            3 => run.reissue_or_void(step).await,
            _ => run.scan_some(step).await,
        }
    }
    run.check().await;
}

impl Run {
    async fn change_list(&mut self, step: u64) {
        let known: Vec<ListId> = self.model.lists.keys().copied().collect();
        let id = match self.dice.below(3) {
            0 => ListId::generate(),
            _ => known[self.dice.below(known.len())],
        };
        let rules = AdmissionRules {
            entries: self.dice.below(3) as u32,
            reentry: self.dice.below(2) == 0,
            seats: (self.dice.below(4) == 0).then(|| vec!["A-2".into(), "*-6".into()]),
            ..AdmissionRules::main()
        };
        let seen = self.store.check_in_list(id).await.unwrap().map(|list| list.updated_at);
        let list = CheckInList {
            id,
            event_id: self.event.id,
            rules: rules.clone(),
            created_at: at(step),
            updated_at: at(1_000 + step),
        };
        assert!(self.store.put_check_in_list(&list, seen).await.unwrap());
        self.model.lists.insert(id, rules);
    }

    async fn undo(&mut self, step: u64) {
        let counted: Vec<ScanId> = self.model.counted.keys().copied().collect();
        if counted.is_empty() {
            return;
        }
        let id = counted[self.dice.below(counted.len())];
        let done = self.store.undo_scan(id, None, at(step)).await.unwrap();
        assert_eq!(matches!(done, Undo::Done(_)), self.model.undo(id), "step {step}: {done:?}");
    }

    async fn reissue_or_void(&mut self, step: u64) {
        let id = self.paper[self.dice.below(self.paper.len())].id;
        if self.dice.below(3) == 0 {
            self.store.void_ticket(id, at(step)).await.unwrap();
        } else if let Some((ticket, _)) = self.store.reissue_ticket(id, at(step)).await.unwrap() {
            self.paper.push(ticket);
        }
    }

    async fn scan_some(&mut self, step: u64) {
        let lists: Vec<ListId> = self.model.lists.keys().copied().collect();
        let mut group = Vec::new();
        for number in 0..1 + self.dice.below(5) {
            // Now and then a scan is sent again.
            if self.dice.below(6) == 0 && !self.sent.is_empty() {
                let (scan, list, paper) = self.sent[self.dice.below(self.sent.len())].clone();
                group.push((NewScan { id: ScanId::generate(), ..scan }, list, paper));
                continue;
            }
            let paper = self.paper[self.dice.below(self.paper.len())].clone();
            let nonce = format!("{step}-{number}");
            let scan = match self.dice.below(3) {
                0 => exit(&paper, "north", &nonce),
                _ => entry(&paper, "north", &nonce),
            };
            let verdict = if self.dice.below(2) == 0 { ScanResult::Ok } else { ScanResult::NotYet };
            let scan = match self.dice.below(4) {
                0 => offline(scan, step, verdict),
                _ => scan,
            };
            let list = lists[self.dice.below(lists.len())];
            group.push((NewScan { list: Some(list), ..scan }, list, paper));
        }
        let scans: Vec<NewScan> = group.iter().map(|(scan, _, _)| scan.clone()).collect();
        let answers = self.store.record_scans(&scans, at(step)).await.unwrap();
        for ((scan, list, paper), answer) in group.into_iter().zip(answers) {
            let now = super::ticket(&self.store, paper.id).await;
            let before = self.model.answers.get(scan.nonce.as_ref().unwrap()).copied();
            let wanted = self.model.scan(&scan, list, &paper, &now);
            let Recorded::Decided(answer) = answer else { panic!("step {step}: {answer:?}") };
            assert_eq!(answer.scan.result, wanted, "step {step}: {answer:?}");
            assert_eq!(answer.replayed, before.is_some());
            assert_eq!(answer.scan.id, before.map_or(scan.id, |(id, _)| id));
            if before.is_none() {
                self.sent.push((scan, list, paper));
            }
        }
    }

    /// The states and the log are what the model has.
    async fn check(&self) {
        let snapshot = self.store.check_in_snapshot(self.event.id, None).await.unwrap().unwrap();
        let serial = |id: TicketId| self.paper.iter().find(|paper| paper.id == id).unwrap().serial;
        let mut wanted: Vec<(ListId, u32, Admission)> = self
            .model
            .states
            .iter()
            .filter(|(_, state)| **state != Admission::default())
            .map(|((list, ticket), state)| (*list, serial(*ticket), *state))
            .collect();
        wanted.sort_by_key(|(list, serial, _)| (*list, *serial));
        let found: Vec<(ListId, u32, Admission)> = snapshot
            .admissions
            .iter()
            .filter(|mark| mark.state != Admission::default())
            .map(|mark| (mark.list, mark.serial, mark.state))
            .collect();
        assert_eq!(found, wanted);
        let log: Vec<Scan> =
            self.store.scans(self.event.id, &ScanFilter::default(), None, 10_000).await.unwrap();
        assert_eq!(log.len(), self.model.answers.len(), "one row a nonce");
        for scan in log {
            let (id, result) = self.model.answers[&scan.nonce];
            assert_eq!((scan.id, scan.result), (id, result));
            let counts = scan.counted && scan.undone_at.is_none();
            assert_eq!(counts, self.model.counted.contains_key(&id), "{scan:?}");
        }
    }
}
