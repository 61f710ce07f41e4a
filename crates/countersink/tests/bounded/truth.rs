//! Between which values a sum was: by what its adders have written down.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::fence;

use countersink::{BatchCounter, Estimate};

use crate::common::log::{Line, total};

/// Words of an adder's line: what it began to add and to subtract, and what it ended.
const BEGUN_UP: usize = 0;
const BEGUN_DOWN: usize = 1;
const UP: usize = 2;
const DOWN: usize = 3;
/// How many additions it has ended.
const ADDITIONS: usize = 4;

/// Something that is added to. Each adder says which one it is.
pub(crate) trait Counts: Sync {
    fn add(&self, adder: usize, n: i64);
    fn estimate(&self) -> Estimate;
    fn sum(&self) -> i64;
}

impl Counts for BatchCounter {
    fn add(&self, _: usize, n: i64) {
        self.add(n);
    }

    fn estimate(&self) -> Estimate {
        self.estimate()
    }

    fn sum(&self) -> i64 {
        self.sum()
    }
}

/// A counter that stays.
pub(crate) fn counter(name: &str, batch: u32) -> &'static BatchCounter {
    let counter = BatchCounter::new(name.to_owned().leak()).batch(batch);
    let counter: &BatchCounter = Box::leak(Box::new(counter));
    // Registered here, so that children share it.
    assert_eq!(counter.sum(), 0);
    counter
}

/// Announces an addition, does it, and confirms it if it was done.
pub(crate) fn logged(line: &Line, n: i64, add: impl FnOnce() -> bool) -> bool {
    let (begun, ended) = words(n);
    line.add(begun, n.unsigned_abs());
    // Pairs with the fence in bracket(): whoever sees the addition sees that it was announced.
    fence(Release);
    let done = add();
    if done {
        line.add(ended, n.unsigned_abs());
        line.add(ADDITIONS, 1);
    } else {
        line.set(begun, line.get(begun) - n.unsigned_abs());
    }
    done
}

fn words(n: i64) -> (usize, usize) {
    if n > 0 {
        (BEGUN_UP, UP)
    } else {
        (BEGUN_DOWN, DOWN)
    }
}

/// A sum was not less and not more than this, at every moment of a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bracket {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

/// Does something, and tells the bracket of the sum while it was done.
pub(crate) fn bracket<T>(lines: &[Line], look: impl FnOnce() -> T) -> (Bracket, T) {
    let ended = [UP, DOWN].map(|word| total(lines, word) as i64);
    let seen = look();
    fence(Acquire);
    let begun = [BEGUN_UP, BEGUN_DOWN].map(|word| total(lines, word) as i64);
    let bracket = Bracket {
        low: ended[0] - begun[1],
        high: begun[0] - ended[1],
    };
    (bracket, seen)
}

impl Bracket {
    pub(crate) fn width(self) -> u64 {
        self.high.abs_diff(self.low)
    }

    pub(crate) fn holds(self, sum: i64) -> bool {
        (self.low..=self.high).contains(&sum)
    }

    /// Whether an estimate and its bound leave one of its values.
    pub(crate) fn agrees(self, estimate: Estimate) -> bool {
        let (low, high) = estimate.range();
        low <= self.high && high >= self.low
    }
}

/// How many additions were confirmed.
pub(crate) fn additions(lines: &[Line]) -> u64 {
    total(lines, ADDITIONS)
}

/// The sum, if every addition that was announced has ended.
pub(crate) fn exact(lines: &[Line]) -> i64 {
    let (bracket, ()) = bracket(lines, || ());
    assert_eq!(bracket.low, bracket.high, "somebody is in the middle");
    bracket.low
}

/// What an adder that was killed had confirmed, and the addition that it may have done or not.
pub(crate) fn at_death(line: &Line) -> (i64, i64) {
    let ended = line.get(UP) as i64 - line.get(DOWN) as i64;
    let begun = line.get(BEGUN_UP) as i64 - line.get(BEGUN_DOWN) as i64;
    (ended, begun - ended)
}
