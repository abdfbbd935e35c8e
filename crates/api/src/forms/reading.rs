//! One reading of a body: its limits, the memory it has claimed, and the reason if it is broken off.

use std::cell::{Cell, RefCell};

use serde::de::{DeserializeSeed, Error};

use super::form::Form;
use super::given::{Seed, State};
use crate::body::{Claim, Refused};
use crate::problem::{Code, FieldError, Problem};

/// Wrong values of one body that are told; entries of lists after them are skipped.
const MOST_WRONG: usize = 100;

/// The largest lists and payloads that a reading keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadingLimits {
    /// Holders of one order.
    pub(crate) holders: usize,
    /// Bytes of a job's payload as JSON.
    pub(crate) payload: usize,
}

/// One reading of a body.
pub(crate) struct Reading {
    pub(crate) limits: ReadingLimits,
    /// `None`: the memory is not counted, because the body is a person's own file.
    claim: RefCell<Option<Claim>>,
    /// Bytes of the body itself.
    body: usize,
    kept: Cell<usize>,
    wrong: Cell<usize>,
    refusal: RefCell<Option<Problem>>,
}

impl Reading {
    /// A reading of `body` bytes whose memory is taken from `claim`.
    pub(crate) fn new(limits: ReadingLimits, body: usize, claim: Option<Claim>) -> Self {
        Self {
            limits,
            claim: RefCell::new(claim),
            body,
            kept: Cell::new(0),
            wrong: Cell::new(0),
            refusal: RefCell::new(None),
        }
    }

    /// Counts memory that a value is about to take; breaks the reading off if it is not to be had.
    pub(crate) fn keep<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let kept = self.kept.get() + bytes;
        self.kept.set(kept);
        let mut claim = self.claim.borrow_mut();
        let Some(claim) = claim.as_mut() else { return Ok(()) };
        // The body itself, the parser's copy of one text, and the values.
        claim.at_least(self.body * 2 + kept).map_err(|refused| self.stop(refused.into()))
    }

    /// Breaks the reading off.
    pub(crate) fn stop<E: Error>(&self, problem: Problem) -> E {
        self.refusal.replace(Some(problem));
        E::custom("the reading was broken off")
    }

    /// Counts a wrong value.
    pub(crate) fn note_wrong(&self) {
        self.wrong.set(self.wrong.get() + 1);
    }

    /// The number of wrong values so far.
    pub(super) fn wrong(&self) -> usize {
        self.wrong.get()
    }

    /// Corrects the number of wrong values, when some of them are not told.
    pub(super) fn set_wrong(&self, wrong: usize) {
        self.wrong.set(wrong);
    }

    /// Whether more wrong values would not be told any more.
    pub(crate) fn has_seen_enough(&self) -> bool {
        self.wrong.get() >= MOST_WRONG
    }

    /// The claim, reduced to the values that were kept and one copy of them.
    fn into_claim(self) -> Option<Claim> {
        let mut claim = self.claim.into_inner();
        if let Some(claim) = claim.as_mut() {
            claim.at_most(self.kept.get() * 2);
        }
        claim
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let (code, detail) = match refused {
            Refused::Caller => (
                Code::RateLimited,
                "your other requests that are being read take all the memory you may have; try again",
            ),
            Refused::Server => (
                Code::Overloaded,
                "requests that are being read take all the memory there is for them; try again",
            ),
        };
        Self::new(code, detail).retry_after(1)
    }
}

/// Reads a form from the bytes of a body; the claim that remains is for the values of the form.
pub(crate) fn parse<F: Form>(
    bytes: &[u8],
    limits: ReadingLimits,
    claim: Option<Claim>,
) -> Result<(F, Option<Claim>), Problem> {
    let reading = Reading::new(limits, bytes.len(), claim);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = Seed::<F>::new(&reading).deserialize(&mut json);
    match read.and_then(|state| json.end().map(|()| state)) {
        Ok(State::Is(form)) => Ok((form, reading.into_claim())),
        Ok(_) => Err(Problem::new(Code::InvalidFields, "the body must be a JSON object")),
        Err(error) => Err(reading.refusal.take().unwrap_or_else(|| {
            Problem::new(Code::InvalidJson, format!("the body is not valid JSON: {error}"))
        })),
    }
}

/// 422 for a body with more of something than anybody needs.
pub(super) fn excess(field: &str, message: String) -> Problem {
    Problem::invalid(vec![FieldError::new(field, message)])
}
