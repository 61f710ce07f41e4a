//! One operation on one lane against the oracle.
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use countersink_percpu::spec::{Op, Outcome};
use countersink_percpu::{Lane, PairSlot, Segment, Slot, Word};

use crate::common::lanes;

/// The pair of words that is operated on, as [`Segment::pair`] counts, and its first word.
const PAIR: usize = 21;
const WORD: usize = 2 * PAIR;

/// A segment of which only this thread uses a word, and the lane on which this thread counts.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) lane: Lane,
}

impl Case<'_> {
    /// Puts `held` into the lane, does the operation in every way that the handles have for it, and
    /// compares what is told and what is stored.
    pub(crate) fn check<T: Word + core::fmt::Debug>(&self, op: Op, held: [u64; 2], guard: u64) {
        for way in 0..ways(op) {
            self.compare::<T>(op, (way, op), held, guard);
        }
    }

    /// Does one operation and expects what the oracle says of another, which is the same but in the
    /// tests of this test.
    fn compare<T: Word + core::fmt::Debug>(
        &self,
        oracle: Op,
        (way, op): (usize, Op),
        held: [u64; 2],
        guard: u64,
    ) {
        let decision = oracle.decide(held, guard);
        let after = decision.commit.unwrap_or(held);
        self.fill(held);
        let outcome = self.apply::<T>(way, op, guard);
        let lane = self.lane;
        let what = || format!("{op:x?} (way {way}) on {held:x?} in {lane:?}, guard {guard}");
        assert_eq!(outcome, decision.outcome, "{}", what());
        self.assert_stored::<T>(after, &what);
    }

    /// Does the operation on what the lane holds now, and returns what it told.
    pub(crate) fn apply<T: Word + core::fmt::Debug>(
        &self,
        way: usize,
        op: Op,
        guard: u64,
    ) -> Outcome {
        let slot = self.segment.slot::<T>(WORD).expect("a word");
        let pair = self.segment.pair::<T>(PAIR).expect("a pair");
        apply(way, op, slot, pair, &AtomicU64::new(guard))
    }

    /// Fills the lane's pair; its neighbours and the other lanes with values of their own.
    pub(crate) fn fill(&self, held: [u64; 2]) {
        for lane in lanes::all(self.segment) {
            for index in WORD - 2..WORD + 4 {
                lanes::word(self.segment, lane, index).store(filler(lane, index), Relaxed);
            }
        }
        for (index, value) in held.into_iter().enumerate() {
            lanes::word(self.segment, self.lane, WORD + index).store(value, Relaxed);
        }
    }

    /// What the lane holds.
    pub(crate) fn held(&self) -> [u64; 2] {
        [0, 1].map(|index| lanes::word(self.segment, self.lane, WORD + index).load(Relaxed))
    }

    /// The lane holds `after`, everything else what it was filled with, and the handles say so too.
    fn assert_stored<T: Word + core::fmt::Debug>(
        &self,
        after: [u64; 2],
        what: &dyn Fn() -> String,
    ) {
        assert_eq!(self.held(), after, "stored by {}", what());
        let mut sum = [0_u64; 2];
        for lane in lanes::all(self.segment) {
            for index in WORD - 2..WORD + 4 {
                let held = lanes::word(self.segment, lane, index).load(Relaxed);
                let operated_on = index == WORD || index == WORD + 1;
                if operated_on {
                    sum[index - WORD] = sum[index - WORD].wrapping_add(held);
                }
                if !(operated_on && lane == self.lane) {
                    let filler = filler(lane, index);
                    assert_eq!(held, filler, "word {index} of {lane:?} after {}", what());
                }
            }
        }
        let slot = self.segment.slot::<T>(WORD).expect("a word");
        let pair = self.segment.pair::<T>(PAIR).expect("a pair");
        assert_eq!(slot.load(self.lane), Some(T::from_bits(after[0])));
        assert_eq!(pair.load(self.lane), Some(after.map(T::from_bits)));
        assert_eq!(slot.sum(), T::from_bits(sum[0]), "sum after {}", what());
    }
}

/// How many ways the handles have to do it.
fn ways(op: Op) -> usize {
    match op {
        Op::Add(1) => 3,
        Op::Add(_) => 2,
        _ => 1,
    }
}

/// Does the operation through a handle. What a handle of `T` compares is signed as `T` is, so the
/// minimum and maximum must be of that kind.
fn apply<T: Word>(
    way: usize,
    op: Op,
    slot: Slot<'_, T>,
    pair: PairSlot<'_, T>,
    guard: &AtomicU64,
) -> Outcome {
    let value = T::from_bits;
    match op {
        Op::Add(n) => {
            match way {
                0 => slot.add(value(n)),
                1 => slot.add_release(value(n)),
                _ => slot.inc(),
            }
            Outcome::Done
        }
        Op::AddReturn(n) => Outcome::Value(slot.add_return(value(n)).to_bits()),
        Op::CompareExchange { old, new } => match slot.compare_exchange(value(old), value(new)) {
            Ok(held) => Outcome::Exchanged([held.to_bits(), 0]),
            Err(held) => Outcome::Mismatch([held.to_bits(), 0]),
        },
        Op::Exchange(new) => Outcome::Value(slot.exchange(value(new)).to_bits()),
        Op::StoreMinSigned(v) if T::SIGNED => Outcome::Stored(slot.store_min(value(v as u64))),
        Op::StoreMaxSigned(v) if T::SIGNED => Outcome::Stored(slot.store_max(value(v as u64))),
        Op::StoreMinUnsigned(v) if !T::SIGNED => Outcome::Stored(slot.store_min(value(v))),
        Op::StoreMaxUnsigned(v) if !T::SIGNED => Outcome::Stored(slot.store_max(value(v))),
        Op::AddUnless(n) => Outcome::Stored(slot.add_unless(value(n), guard)),
        Op::AddWithin { n, most } => Outcome::Stored(pair.add_within(value(n), most)),
        Op::AddWithinAtMost { n, most, limit } => {
            Outcome::Stored(pair.add_within_at_most(value(n), most, &signed(guard), limit))
        }
        Op::AddWithinAtLeast { n, most, limit } => {
            Outcome::Stored(pair.add_within_at_least(value(n), most, &signed(guard), limit))
        }
        Op::AddPair(n) => {
            pair.add(n.map(value));
            Outcome::Done
        }
        Op::CompareExchangePair { old, new } => {
            match pair.compare_exchange(old.map(value), new.map(value)) {
                Ok(held) => Outcome::Exchanged(held.map(T::to_bits)),
                Err(held) => Outcome::Mismatch(held.map(T::to_bits)),
            }
        }
        Op::StoreMinSigned(_)
        | Op::StoreMaxSigned(_)
        | Op::StoreMinUnsigned(_)
        | Op::StoreMaxUnsigned(_) => panic!("{op:?} through a handle of the other kind"),
    }
}

/// The same as a signed word.
fn signed(guard: &AtomicU64) -> AtomicI64 {
    AtomicI64::new(guard.load(Relaxed) as i64)
}

/// A value that tells where it was put.
fn filler(lane: Lane, index: usize) -> u64 {
    let place = match lane {
        Lane::Shared => 1,
        Lane::Bias => 2,
        Lane::Cpu(cpu) => 3 + u64::from(cpu),
    };
    place << 56 | (index as u64) << 32 | 0x5a5a_5a5a
}

/// An operation that is another than its name says, or is done elsewhere, does not pass.
#[cfg(test)]
mod mutants {
    use super::*;
    use crate::suite::find_lane;

    /// Whether the comparison fails.
    fn is_found(oracle: Op, done: Op, guard: u64, elsewhere: bool) -> bool {
        // Each in a thread of its own on no particular CPU, so the lane may change: then it fails,
        // which is not what is asked here, and it is tried again.
        let segment = Segment::private().expect("memory");
        loop {
            let lane = find_lane(&segment);
            let case = Case {
                segment: &segment,
                lane: if elsewhere { Lane::Bias } else { lane },
            };
            let compare = || case.compare::<u64>(oracle, (0, done), [7, 8], guard);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare));
            if find_lane(&segment) == lane {
                return result.is_err();
            }
        }
    }

    #[test]
    fn are_found() {
        let pairs = [
            // Another result, another value stored, a value stored or not, half of a pair.
            (Op::AddReturn(3), Op::Exchange(10)),
            (Op::Add(3), Op::Add(4)),
            (Op::StoreMinUnsigned(9), Op::StoreMaxUnsigned(9)),
            (
                Op::CompareExchange { old: 7, new: 1 },
                Op::CompareExchange { old: 8, new: 1 },
            ),
            (Op::AddPair([1, 2]), Op::AddPair([1, 0])),
            // 7 and 8 are held: 9 more is 8 away.
            (
                Op::AddWithin { n: 9, most: 8 },
                Op::AddWithin { n: 9, most: 7 },
            ),
            (
                Op::AddWithinAtMost {
                    n: 1,
                    most: 8,
                    limit: 0,
                },
                Op::AddWithinAtLeast {
                    n: 1,
                    most: 8,
                    limit: 1,
                },
            ),
        ];
        for (oracle, done) in pairs {
            assert!(is_found(oracle, done, 0, false), "{done:?} for {oracle:?}");
            assert!(!is_found(oracle, oracle, 0, false), "{oracle:?}");
            assert!(
                is_found(oracle, oracle, 0, true),
                "{oracle:?} on another lane"
            );
        }
    }
}
