//! What is published, under loom: an observer that sees a published word sees that the addition was announced, and one that sees
//! that an addition has ended finds it in what is published, whatever the order in which memory shows things.
//!
//! The lanes and the two published words are loom's atomics here, each pair in one word, as hardware loads and commits it at once;
//! what moves them is the code that counts. `ci/loom` runs it.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::thread;

use super::carry::{self, Both, Pair, Word};
use super::estimate::Estimate;

/// Two numbers in one word.
fn packed([high, low]: [i64; 2]) -> u64 {
    u64::from(high as i32 as u32) << 32 | u64::from(low as i32 as u32)
}

fn unpacked(word: u64) -> [i64; 2] {
    [(word >> 32) as i32, word as i32].map(i64::from)
}

/// A lane.
struct Lane(AtomicU64);

impl Pair for &Lane {
    fn look(&self) -> [i64; 2] {
        unpacked(self.0.load(Acquire))
    }

    fn exchange(&self, old: [i64; 2], new: [i64; 2]) -> Result<(), [i64; 2]> {
        let exchanged = self
            .0
            .compare_exchange(packed(old), packed(new), AcqRel, Acquire);
        exchanged.map(drop).map_err(unpacked)
    }

    fn shift(&self, n: i64) {
        let mut held = self.look();
        while let Err(found) = self.exchange(held, held.map(|word| word + n)) {
            held = found;
        }
    }
}

/// One of the two words, as the code has it: an addition that acquires and releases. A mutant does neither.
struct Half<'a> {
    words: &'a AtomicU64,
    upper: bool,
    is_relaxed: bool,
}

impl Word for Half<'_> {
    fn add(&self, n: i128) {
        if n == 0 {
            return;
        }
        let moved = |word| {
            let [upper, lower] = unpacked(word);
            let n = n as i64;
            Some(packed(if self.upper {
                [upper + n, lower]
            } else {
                [upper, lower + n]
            }))
        };
        let orders = if self.is_relaxed {
            [Relaxed; 2]
        } else {
            [AcqRel, Acquire]
        };
        let _ = self.words.fetch_update(orders[0], orders[1], moved);
    }
}

/// A counter with a lane, and what its adders have written down.
struct Counter {
    lane: Lane,
    words: AtomicU64,
    most: u64,
    is_relaxed: bool,
    announced: AtomicU64,
    ended: AtomicU64,
}

impl Counter {
    fn half(&self, upper: bool) -> Half<'_> {
        Half {
            words: &self.words,
            upper,
            is_relaxed: self.is_relaxed,
        }
    }

    fn add(&self, n: i64) {
        self.announced.fetch_add(n as u64, Relaxed);
        let published = Both {
            upper: self.half(true),
            lower: self.half(false),
        };
        carry::add(&&self.lane, i128::from(n), self.most, &published);
        self.ended.fetch_add(n as u64, Release);
    }

    /// As a reader does: both words at once.
    fn estimate(&self) -> Estimate {
        let [high, low] = unpacked(self.words.load(Acquire));
        Estimate::between(low, high, self.most as i64)
    }

    /// The sum was at least what had ended before, and at most what was announced afterwards.
    fn observe(&self) {
        let ended = self.ended.load(Acquire) as i64;
        let (low, high) = self.estimate().range();
        let announced = self.announced.load(Relaxed) as i64;
        assert!(high >= ended, "{ended} have ended, at most {high} are told");
        assert!(
            low <= announced,
            "{announced} were announced, at least {low} are told"
        );
    }
}

/// Adders, one of these amounts each, and an observer.
fn explore(most: u64, amounts: &[i64], is_relaxed: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    let amounts = amounts.to_vec();
    builder.check(move || {
        let counter = Arc::new(Counter {
            lane: Lane(AtomicU64::new(0)),
            words: AtomicU64::new(0),
            most,
            is_relaxed,
            announced: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        });
        let threads: Vec<_> = amounts
            .iter()
            .map(|n| {
                let (counter, n) = (Arc::clone(&counter), *n);
                thread::spawn(move || counter.add(n))
            })
            .collect();
        counter.observe();
        for thread in threads {
            thread.join().unwrap();
        }
        counter.observe();
        let [value, published] = (&counter.lane).look();
        assert_eq!(value, amounts.iter().sum::<i64>());
        assert!((value - published).unsigned_abs() <= most);
        assert_eq!(
            unpacked(counter.words.load(Acquire)),
            [published; 2],
            "nothing is in progress"
        );
    });
}

#[test]
fn every_addition_publishes() {
    explore(0, &[1, 2], false);
}

#[test]
fn some_additions_publish() {
    explore(3, &[1, 2], false);
    explore(3, &[2, 2], false);
    explore(7, &[3, 9], false);
}

#[test]
fn words_that_order_nothing_are_found() {
    let found = std::panic::catch_unwind(|| explore(0, &[1], true));
    let message = found.expect_err("not found");
    let text = message.downcast_ref::<String>().map_or("", String::as_str);
    assert!(text.contains("were announced"), "{text}");
}
