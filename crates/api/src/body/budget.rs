//! The memory that bodies of requests may take, for the whole server and for each caller.
//!
//! A body claims memory as its bytes arrive, before they are kept, and gives it back when its request ends, or its client
//! hangs up. A length that is only announced claims nothing, so that idle connections keep nobody out; a body whose length
//! would not fit now is refused before it is read. Nothing waits for memory: a claim that does not fit is refused. Small
//! bodies have memory of their own, so that large ones do not keep them out.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// A body up to this size is small, in bytes.
const SMALL: usize = 64 << 10;
/// Memory for all small bodies, in bytes.
const SMALL_BODIES: usize = 32 << 20;
/// The largest bodies that are in flight at the same time.
const LARGEST_AT_ONCE: usize = 4;
/// A body of one byte takes up to so many: itself, the parser's copy of a text, and the values. When it is read, these are
/// the values and a copy to work with.
const GROWTH: usize = 3;
/// Memory of one holder in an order, in bytes, beside the bytes of its body.
const HOLDER: usize = 256;

/// The two stocks of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stock {
    Small,
    Large,
}

/// The reason for which a claim is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The caller's share is used up.
    Caller,
    /// The server's memory for bodies is used up.
    Server,
}

/// Gives out memory. Clones share it.
#[derive(Clone)]
pub struct Budget {
    used: Arc<Mutex<Used>>,
    large: usize,
}

#[derive(Default)]
struct Used {
    small: usize,
    large: usize,
    callers: HashMap<String, Share>,
}

#[derive(Default, Clone, Copy)]
struct Share {
    small: usize,
    large: usize,
}

impl Budget {
    /// A budget for bodies of at most so many bytes, and orders of at most so many holders.
    pub fn new(largest_body: usize, most_holders: usize) -> Self {
        let largest = memory_of(largest_body.max(SMALL)) + most_holders * HOLDER;
        Self { used: Arc::default(), large: largest * LARGEST_AT_ONCE }
    }

    /// A claim for a body that has announced so many bytes: enough for none of them yet. A length that does not fit
    /// into the memory that is free now is refused.
    pub(crate) fn claim(&self, caller: &str, announced: usize) -> Result<Claim, Refused> {
        let stock = if announced <= SMALL { Stock::Small } else { Stock::Large };
        self.check(&self.used.lock(), caller, stock, memory_of(announced))?;
        let caller = caller.to_owned();
        let mut claim = Claim { budget: self.clone(), caller, stock, bytes: 0 };
        claim.at_least(memory_of(0))?;
        Ok(claim)
    }

    /// Bytes that are claimed now.
    #[cfg(test)]
    fn in_use(&self) -> usize {
        let used = self.used.lock();
        used.small + used.large
    }

    fn size(&self, stock: Stock) -> usize {
        match stock {
            Stock::Small => SMALL_BODIES,
            Stock::Large => self.large,
        }
    }

    fn check(&self, used: &Used, caller: &str, stock: Stock, bytes: usize) -> Result<(), Refused> {
        let size = self.size(stock);
        let share = used.callers.get(caller).copied().unwrap_or_default().of(stock);
        // Half, so that no caller alone keeps all others out.
        if share + bytes > size / 2 {
            return Err(Refused::Caller);
        }
        if used.of(stock) + bytes > size {
            return Err(Refused::Server);
        }
        Ok(())
    }

    fn take(&self, caller: &str, stock: Stock, bytes: usize) -> Result<(), Refused> {
        let mut used = self.used.lock();
        self.check(&used, caller, stock, bytes)?;
        *used.of_mut(stock) += bytes;
        *used.callers.entry(caller.to_owned()).or_default().of_mut(stock) += bytes;
        Ok(())
    }

    fn give_back(&self, caller: &str, stock: Stock, bytes: usize) {
        let mut used = self.used.lock();
        *used.of_mut(stock) -= bytes;
        if let Some(share) = used.callers.get_mut(caller) {
            *share.of_mut(stock) -= bytes;
            if share.small == 0 && share.large == 0 {
                used.callers.remove(caller);
            }
        }
    }
}

impl Used {
    fn of(&self, stock: Stock) -> usize {
        match stock {
            Stock::Small => self.small,
            Stock::Large => self.large,
        }
    }

    fn of_mut(&mut self, stock: Stock) -> &mut usize {
        match stock {
            Stock::Small => &mut self.small,
            Stock::Large => &mut self.large,
        }
    }
}

impl Share {
    fn of(self, stock: Stock) -> usize {
        match stock {
            Stock::Small => self.small,
            Stock::Large => self.large,
        }
    }

    fn of_mut(&mut self, stock: Stock) -> &mut usize {
        match stock {
            Stock::Small => &mut self.small,
            Stock::Large => &mut self.large,
        }
    }
}

/// Memory that a body of so many bytes may take.
fn memory_of(body: usize) -> usize {
    body * GROWTH + 1024
}

/// Memory that one request has claimed; given back when the value is dropped.
#[must_use = "the memory is given back when the claim is dropped"]
pub(crate) struct Claim {
    budget: Budget,
    caller: String,
    stock: Stock,
    bytes: usize,
}

impl Claim {
    /// Claims more for a body of which so many bytes have arrived.
    pub(crate) fn for_body(&mut self, body: usize) -> Result<(), Refused> {
        if self.stock == Stock::Small && body > SMALL {
            *self = self.budget.claim(&self.caller, body)?;
        }
        self.at_least(memory_of(body))
    }

    /// Claims more, unless the claim has so many bytes already.
    pub(crate) fn at_least(&mut self, bytes: usize) -> Result<(), Refused> {
        if bytes > self.bytes {
            // In steps, because lists ask for each of their entries.
            let more = (bytes - self.bytes).max(self.bytes / 16);
            self.budget.take(&self.caller, self.stock, more)?;
            self.bytes += more;
        }
        Ok(())
    }

    /// Gives back what is more than so many bytes.
    pub(crate) fn at_most(&mut self, bytes: usize) {
        if let Some(more) = self.bytes.checked_sub(bytes) {
            self.budget.give_back(&self.caller, self.stock, more);
            self.bytes = bytes;
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.at_most(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    /// The claim of a body that has arrived.
    fn arrived(budget: &Budget, caller: &str, body: usize) -> Result<Claim, Refused> {
        let mut claim = budget.claim(caller, body)?;
        claim.for_body(body)?;
        Ok(claim)
    }

    #[test]
    fn a_caller_gets_half_and_all_callers_get_all() {
        let budget = Budget::new(16 * MB, 0);
        let anns = [(); 2].map(|()| arrived(&budget, "ann", 16 * MB).unwrap());
        assert_eq!(budget.claim("ann", 16 * MB).map(drop), Err(Refused::Caller));
        let bobs = [(); 2].map(|()| arrived(&budget, "bob", 16 * MB).unwrap());
        assert_eq!(budget.claim("eve", 16 * MB).map(drop), Err(Refused::Server));
        drop(anns);
        let eves = arrived(&budget, "eve", 16 * MB).unwrap();
        drop((bobs, eves));
        assert_eq!(budget.in_use(), 0);
        assert!(budget.used.lock().callers.is_empty(), "callers without a claim are forgotten");
    }

    #[test]
    fn bodies_that_are_announced_and_do_not_arrive_keep_nobody_out() {
        let budget = Budget::new(16 * MB, 0);
        let idle: Vec<Claim> = (0..1_000)
            .flat_map(|_| ["ann", "bob"])
            .map(|caller| budget.claim(caller, 16 * MB).unwrap())
            .collect();
        assert!(budget.in_use() <= 2_000 * memory_of(0), "{}", budget.in_use());
        for caller in ["ann", "eve"] {
            drop(arrived(&budget, caller, 15 * MB).unwrap());
        }
        // Those that arrive after all have the same bounds as before.
        let mut claims = idle.into_iter();
        let large: Vec<_> =
            claims.by_ref().take(4).map(|mut c| c.for_body(15 * MB).map(|()| c)).collect();
        assert!(large.iter().all(Result::is_ok));
        assert!(claims.all(|mut claim| claim.for_body(15 * MB).is_err()));
    }

    #[test]
    fn large_bodies_do_not_keep_small_ones_out() {
        let budget = Budget::new(16 * MB, 0);
        let _large = ["a", "b", "c", "e"].map(|name| arrived(&budget, name, 15 * MB).unwrap());
        assert!(budget.claim("d", MB * 10).is_err());
        let small: Vec<Claim> = (0..1_000).map(|_| budget.claim("d", 1_000).unwrap()).collect();
        drop(small);
    }

    #[test]
    fn a_body_of_unknown_length_claims_as_it_grows() {
        let budget = Budget::new(MB, 0);
        let mut claim = budget.claim("ann", 0).unwrap();
        for size in [1_000, SMALL, SMALL + 1, MB] {
            claim.for_body(size).unwrap();
            assert!(budget.in_use() >= memory_of(size), "{size}");
        }
        assert_eq!(budget.used.lock().small, 0, "it has moved to the memory of large bodies");
        claim.at_most(1_000);
        assert_eq!(budget.in_use(), 1_000);
        assert_eq!(claim.at_least(100 * MB), Err(Refused::Caller));
        drop(claim);
        assert_eq!(budget.in_use(), 0);
    }

    #[test]
    fn an_order_as_large_as_allowed_fits_into_one_share() {
        let budget = Budget::new(16 * MB, 1_000_000);
        let mut claim = arrived(&budget, "ann", 16 * MB).unwrap();
        claim.at_least(2 * 16 * MB + 1_000_000 * HOLDER).unwrap();
    }
}
