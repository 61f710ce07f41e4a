//! Every operation as a counter.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI64, AtomicU64};

use countersink_percpu::local::{LocalCounter, PerCpu};
use countersink_percpu::{PairSlot, Segment, Slot};

use crate::counter::Counter;

/// A counter that is one word of a segment, and how it counts.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident($slot:ident, $n:ident) => $count:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name<'a>(pub(crate) Slot<'a>);

        impl Counter for $name<'_> {
            fn name(&self) -> &'static str {
                stringify!($name)
            }

            fn count(&self, $n: u64) -> u64 {
                let $slot = self.0;
                $count;
                $n
            }

            fn total(&self) -> u64 {
                self.0.sum()
            }
        }
    )*};
}

counters! {
    /// By `add`.
    Add(slot, n) => slot.add(n);
    /// By `inc`, where it can.
    Inc(slot, n) => if n == 1 { slot.inc() } else { slot.add(n) };
    /// By `add_release`.
    AddRelease(slot, n) => slot.add_release(n);
    /// By `add_return`. The lane holds what was added to it, so no result is 0.
    AddReturn(slot, n) => assert_ne!(slot.add_return(n), 0);
    /// By `compare_exchange`, repeated until the lane held what was expected. A thread may come to
    /// another lane in between: what it adds there is the same.
    CompareExchange(slot, n) => {
        let mut held = 0;
        while let Err(other) = slot.compare_exchange(held, held.wrapping_add(n)) {
            held = other;
        }
    };
    /// By `exchange`: takes everything out of a lane, and adds it again with what is to be counted.
    Exchange(slot, n) => slot.add(slot.exchange(0).wrapping_add(n));
}

/// By [`PerCpu`].
#[derive(Debug)]
pub(crate) struct Local<'a>(pub(crate) PerCpu<'a>);

impl Counter for Local<'_> {
    fn name(&self) -> &'static str {
        "Local"
    }

    fn count(&self, n: u64) -> u64 {
        self.0.add(n as i64);
        n
    }

    fn total(&self) -> u64 {
        self.0.read() as u64
    }
}

/// By `add_unless`, if the guard allows. Every handler raises the guard behind it; whoever is
/// refused lowers it.
#[derive(Debug)]
pub(crate) struct AddUnless<'a> {
    pub(crate) slot: Slot<'a>,
    pub(crate) guard: AtomicU64,
}

impl Counter for AddUnless<'_> {
    fn name(&self) -> &'static str {
        "AddUnless"
    }

    fn count(&self, n: u64) -> u64 {
        if !self.slot.add_unless(n, &self.guard) {
            self.guard.store(0, SeqCst);
            return 0;
        }
        if n > 1 {
            self.guard.store(1, SeqCst);
        }
        n
    }

    fn total(&self) -> u64 {
        self.slot.sum()
    }
}

/// By `add` on a pair: whatever goes up in the first word goes down in the second.
#[derive(Debug)]
pub(crate) struct AddPair<'a>(pub(crate) PairSlot<'a>);

impl Counter for AddPair<'_> {
    fn name(&self) -> &'static str {
        "AddPair"
    }

    fn count(&self, n: u64) -> u64 {
        self.0.add([n, n.wrapping_neg()]);
        n
    }

    fn total(&self) -> u64 {
        pair_total(self.0)
    }

    fn violations(&self) -> u64 {
        torn(self.0)
    }
}

/// By `add_within`, and where that is too far by moving both words.
#[derive(Debug)]
pub(crate) struct AddWithin<'a>(pub(crate) PairSlot<'a>);

/// By `add_within_at_most`, with a guard that allows it.
#[derive(Debug)]
pub(crate) struct AddWithinAtMost<'a>(pub(crate) PairSlot<'a>, pub(crate) AtomicI64);

/// How far the first word may be from the second: a little, so that it often is too far; or so far that every attempt reaches
/// the commit, where there is to be something in between before it.
const REACH: u64 = if cfg!(countersink_inject) {
    1 << 61
} else {
    100
};

impl Counter for AddWithin<'_> {
    fn name(&self) -> &'static str {
        "AddWithin"
    }

    fn count(&self, n: u64) -> u64 {
        if !self.0.add_within(n, REACH) {
            self.0.add([n, n]);
        }
        n
    }

    fn total(&self) -> u64 {
        self.0.sum()[0]
    }

    fn violations(&self) -> u64 {
        too_far(self.0)
    }
}

impl Counter for AddWithinAtMost<'_> {
    fn name(&self) -> &'static str {
        "AddWithinAtMost"
    }

    fn count(&self, n: u64) -> u64 {
        if !self.0.add_within_at_most(n, REACH, &self.1, 0) {
            self.0.add([n, n]);
        }
        n
    }

    fn total(&self) -> u64 {
        self.0.sum()[0]
    }

    fn violations(&self) -> u64 {
        too_far(self.0)
    }
}

/// In how many lanes the words are further apart than allowed.
fn too_far(pair: PairSlot<'_>) -> u64 {
    let far = |[first, second]: [u64; 2]| first.wrapping_sub(second).cast_signed().unsigned_abs();
    pair.values().filter(|held| far(*held) > REACH).count() as u64
}

/// By `compare_exchange` on a pair.
#[derive(Debug)]
pub(crate) struct CompareExchangePair<'a>(pub(crate) PairSlot<'a>);

impl Counter for CompareExchangePair<'_> {
    fn name(&self) -> &'static str {
        "CompareExchangePair"
    }

    fn count(&self, n: u64) -> u64 {
        let mut held = [0_u64; 2];
        loop {
            let [up, down] = held;
            let new = [up.wrapping_add(n), down.wrapping_sub(n)];
            match self.0.compare_exchange(held, new) {
                Ok(_) => return n,
                Err(other) => held = other,
            }
        }
    }

    fn total(&self) -> u64 {
        pair_total(self.0)
    }

    fn violations(&self) -> u64 {
        torn(self.0)
    }
}

fn pair_total(pair: PairSlot<'_>) -> u64 {
    let [up, down] = pair.sum();
    assert_eq!(down, up.wrapping_neg(), "half a pair was lost");
    up
}

/// How many lanes show half an operation.
fn torn(pair: PairSlot<'_>) -> u64 {
    // Beyond the last CPU there is no lane.
    let cpus = (0..).map_while(|cpu| pair.load(countersink_percpu::Lane::Cpu(cpu)));
    cpus.filter(|[up, down]| *down != up.wrapping_neg()).count() as u64
}

/// Runs `each` with a counter for every operation; returns the sum of what it returns.
pub(crate) fn for_each(segment: &Segment, mut each: impl FnMut(&dyn Counter) -> u64) -> u64 {
    let slot = |index| segment.slot(index).expect("a word");
    let pair = |index| segment.pair(index).expect("a pair");
    let local = segment.slot(7).expect("a word");
    let guarded = AddUnless {
        slot: slot(6),
        guard: AtomicU64::new(0),
    };
    let limited = AddWithinAtMost(pair(11), AtomicI64::new(0));
    let counters: [&dyn Counter; 12] = [
        &Add(slot(0)),
        &Inc(slot(1)),
        &AddRelease(slot(2)),
        &AddReturn(slot(3)),
        &CompareExchange(slot(4)),
        &Exchange(slot(5)),
        &guarded,
        &Local(PerCpu(local)),
        &AddPair(pair(8)),
        &CompareExchangePair(pair(9)),
        &AddWithin(pair(10)),
        &limited,
    ];
    counters.into_iter().map(&mut each).sum()
}
