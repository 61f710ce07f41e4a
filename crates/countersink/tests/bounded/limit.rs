//! Limited additions at their limit, from many threads.
//!
//! Each thread has what it added and takes it back later, so the truth is in one word: raised after an addition, and lowered
//! before a subtraction, it is never above the sum; lowered afterwards, never below.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;

use countersink::BatchCounter;

use crate::common::child::alone;
use crate::common::cpus::pause;
use crate::common::random::Random;
use crate::truth::counter;

const SEED: u64 = 0x11b1_0004;
const THREADS: u64 = 8;
const LIMIT: i64 = 2000;
/// The largest amount.
const MOST: u64 = 16;

/// A counter with a limit.
trait Limited: Sync {
    fn limited_add(&self, limit: i64, n: i64) -> bool;
    fn add(&self, n: i64);
    fn sum(&self) -> i64;
}

impl Limited for BatchCounter {
    fn limited_add(&self, limit: i64, n: i64) -> bool {
        self.limited_add(limit, n)
    }

    fn add(&self, n: i64) {
        self.add(n);
    }

    fn sum(&self) -> i64 {
        self.sum()
    }
}

/// Publishes, takes a precise sum, and adds if that leaves room. Two that see each other's publication only
/// after their sums both add, so there it waits for the other.
struct PreciseSum {
    counter: &'static BatchCounter,
    published: AtomicI64,
}

impl Limited for PreciseSum {
    fn limited_add(&self, limit: i64, n: i64) -> bool {
        self.published.fetch_add(n, SeqCst);
        let sum = self.counter.sum() + n;
        let room = if n > 0 { sum <= limit } else { sum >= limit };
        pause();
        if room {
            self.counter.add(n);
        } else {
            self.published.fetch_sub(n, SeqCst);
        }
        room
    }

    fn add(&self, n: i64) {
        self.counter.add(n);
        self.published.fetch_add(n, SeqCst);
    }

    fn sum(&self) -> i64 {
        self.counter.sum()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    added: u64,
    refused: u64,
    /// How often, and how far, it was on the wrong side.
    passed: u64,
    farthest: i64,
}

impl Outcome {
    fn and(self, other: Outcome) -> Outcome {
        Outcome {
            added: self.added + other.added,
            refused: self.refused + other.refused,
            passed: self.passed + other.passed,
            farthest: self.farthest.max(other.farthest),
        }
    }
}

/// One thread's attempts; `sign` is the direction of the limit.
fn attempt(
    limited: &dyn Limited,
    truth: &AtomicI64,
    sign: i64,
    attempts: u64,
    seed: u64,
) -> Outcome {
    let (mut random, mut held, mut outcome) = (Random(seed), 0_i64, Outcome::default());
    let mut attempted = 0;
    while attempted < attempts {
        let chance = random.next();
        let n = 1 + (chance % MOST) as i64;
        if held < n || chance >> 32 & 3 != 0 {
            attempted += 1;
            if !limited.limited_add(sign * LIMIT, sign * n) {
                outcome.refused += 1;
                continue;
            }
            outcome.added += 1;
            held += n;
            let sum = truth.fetch_add(n, SeqCst) + n;
            outcome.passed += u64::from(sum > LIMIT);
            outcome.farthest = outcome.farthest.max(sum);
        } else {
            truth.fetch_sub(n, SeqCst);
            limited.add(-sign * n);
            held -= n;
        }
    }
    outcome
}

/// So many attempts of all threads together.
fn attempts(limited: &dyn Limited, sign: i64, attempts_in_all: u64) -> Outcome {
    let truth = AtomicI64::new(0);
    let outcome = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let truth = &truth;
                scope.spawn(move || {
                    attempt(
                        limited,
                        truth,
                        sign,
                        attempts_in_all / THREADS,
                        SEED + thread,
                    )
                })
            })
            .collect();
        let outcomes = threads
            .into_iter()
            .map(|thread| thread.join().expect("nobody panics"));
        outcomes.fold(Outcome::default(), Outcome::and)
    });
    assert_eq!(limited.sum(), sign * truth.into_inner(), "the sum is exact");
    outcome
}

fn never_passed(attempts_in_all: u64) {
    for (batch, sign) in [(32, 1), (32, -1), (1, 1), (8, -1)] {
        let counter = counter(&format!("limit_{batch}_{sign}"), batch);
        let outcome = attempts(counter, sign, attempts_in_all / 4);
        println!("seed {SEED:#x}, batch {batch}, direction {sign}: {outcome:?}");
        assert_eq!(outcome.passed, 0, "{outcome:?}");
        assert!(
            outcome.added > 1000 && outcome.refused > 1000,
            "not at the limit"
        );
        // Nobody else takes part, so what is known is enough to come as near as this.
        assert!(outcome.farthest > LIMIT - 3 * counter.bound() as i64 - 2 * MOST as i64);
    }
}

#[test]
fn is_never_passed() {
    never_passed(10_000_000);
}

#[test]
#[ignore = "half a minute"]
fn is_never_passed_in_a_hundred_million_attempts() {
    never_passed(100_000_000);
}

#[test]
fn is_passed_by_publishing_and_a_precise_sum() {
    let wrong = PreciseSum {
        counter: counter("limit_precise_sum", 32),
        published: AtomicI64::new(0),
    };
    let outcome = attempts(&wrong, 1, 200_000);
    println!("seed {SEED:#x}, publish and precise sum: {outcome:?}");
    assert!(outcome.passed > 0, "not found");
}

/// Attempts only where there is room, even with all that the counter does not know; how many were refused. `spare` is
/// how much room that is.
fn refused_with_room(counter: &BatchCounter, limit: i64, spare: i64, attempts: u64) -> u64 {
    // What was announced: never below the sum and what is under way.
    let announced = AtomicI64::new(0);
    let release = |held: &mut i64| {
        counter.sub(*held);
        announced.fetch_sub(core::mem::take(held), SeqCst);
    };
    let attempt = |seed| {
        let (mut random, mut held, mut refused, mut attempted) = (Random(seed), 0, 0, 0);
        while attempted < attempts {
            let n = 1 + random.below(MOST) as i64;
            let announces = |sum: i64| (sum + n <= limit - spare).then_some(sum + n);
            let is_full = announced.fetch_update(SeqCst, SeqCst, announces).is_err();
            if !is_full {
                attempted += 1;
                if counter.limited_add(limit, n) {
                    held += n;
                } else {
                    refused += 1;
                    announced.fetch_sub(n, SeqCst);
                }
            }
            // Full, or by chance.
            if is_full || random.below(64) == 0 {
                release(&mut held);
                pause();
            }
        }
        // Others wait for room.
        release(&mut held);
        // Or the others find it full for ever.
        counter.sub(held);
        announced.fetch_sub(held, SeqCst);
        refused
    };
    std::thread::scope(|scope| {
        let attempt = &attempt;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || attempt(SEED + thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("nobody panics"))
            .sum()
    })
}

/// It refuses only where the upper end of the estimate and what is added is above the limit.
#[test]
fn does_not_refuse_where_there_is_room() {
    const ATTEMPTS: u64 = 200_000;
    for batch in [1, 8, 32] {
        let counter = counter(&format!("limit_room_{batch}"), batch);
        let slack = counter.bound() as i64;
        let limit = 1000 + 3 * slack;
        // What is published can be a slack above the sum, and what is not published another; each thread that is
        // in the middle may have raised more than it adds by less than two batches.
        let spare = 2 * slack + THREADS as i64 * 2 * i64::from(batch);
        let refused = refused_with_room(counter, limit, spare, ATTEMPTS);
        println!("seed {SEED:#x}, batch {batch}: {refused} refused with a room of {spare}");
        assert_eq!(refused, 0);
        let refused = refused_with_room(counter, limit, 0, ATTEMPTS);
        println!("{refused} without");
        assert!(refused > 0 || slack == 0, "not at the limit");
    }
}

/// Not for want of knowledge alone: at rest, by one thread, it is exactly known when it refuses.
#[test]
fn is_reached_from_both_sides() {
    alone("limit::is_reached_from_both_sides", || {
        for sign in [1, -1] {
            let counter = counter(&format!("limit_reached_{sign}"), 1);
            // With a batch of 1, all is published.
            assert!(counter.limited_add(sign * 100, sign * 60));
            assert!(!counter.limited_add(sign * 100, sign * 41));
            assert!(counter.limited_add(sign * 100, sign * 40));
            assert!(!counter.limited_add(sign * 100, sign));
            assert_eq!(counter.sum(), sign * 100);
            counter.sub(sign);
            assert!(counter.limited_add(sign * 100, sign));
            // On the wrong side nothing more in that direction goes; nothing at all does.
            counter.add(sign * 10);
            assert!(!counter.limited_add(sign * 100, sign));
            assert!(counter.limited_add(sign * 100, 0));
        }
    });
}
