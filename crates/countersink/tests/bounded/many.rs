//! Many counters side by side, one after the other in the same words, in families, and under one name.

use countersink::{BatchCounter, BatchCounters, Family, Home};

use crate::common::child::alone;
use crate::common::random::Random;

const SEED: u64 = 0x3a27_0004;
const THREADS: u64 = 4;
const ROUNDS: u64 = 200_000;

/// Every thread adds to some, and all have their own sums.
fn apart(many: &BatchCounters) {
    let rest = many.get(0).expect("the first").bound();
    let work = |seed| {
        let mut random = Random(seed);
        let mut sums = vec![0; many.len()];
        for _ in 0..ROUNDS {
            let index = random.below(many.len() as u64) as usize;
            let n = random.below(100) as i64 - 40;
            many.get(index).expect("one of them").add(n);
            sums[index] += n;
        }
        sums
    };
    let sums: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(SEED + thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("nobody panics"))
            .collect()
    });
    for index in 0..many.len() {
        let one = many.get(index).expect("one of them");
        let sum = sums.iter().map(|sums| sums[index]).sum::<i64>();
        assert_eq!((one.sum(), one.bound()), (sum, rest), "{index}");
        assert!(sum.abs_diff(one.read()) <= rest);
    }
    assert!(many.get(many.len()).is_none());
}

#[test]
fn neighbours_count_apart() {
    println!("seed {SEED:#x}");
    apart(&BatchCounter::many("many_apart", 100).batch(16));
    apart(&BatchCounter::many("many_most", 4095).batch(16));
    apart(&BatchCounter::many("many_one", 1).batch(1));
}

/// What is done to one is nothing to its neighbours.
#[test]
fn neighbours_are_left_alone() {
    let many = BatchCounter::many("many_alone", 9).batch(8);
    let rest = many.get(0).expect("the first").bound();
    (0..9).for_each(|index| many.get(index).expect("one").add(100 * index as i64));
    let fourth = many.get(4).expect("the fourth");
    assert_eq!(fourth.set(-5), 400);
    assert!(fourth.limited_add(1000, 7));
    assert!(!fourth.limited_add(2, 1));
    fourth.add_batch(1 << 40, 8);
    fourth.sub(1 << 40);
    for index in 0..9 {
        let one = many.get(index).expect("one");
        let sum = if index == 4 { 2 } else { 100 * index as i64 };
        assert_eq!((one.sum(), one.bound()), (sum, rest));
        assert!(sum.abs_diff(one.read()) <= rest);
    }
}

/// A counter begins at 0, with a bound of its own, whatever was in its words.
#[test]
fn words_are_used_again() {
    alone("many::words_are_used_again", || {
        let mut random = Random(SEED);
        println!("seed {SEED:#x}");
        let lanes = BatchCounter::new("many_lanes").batch(2).bound();
        for round in 0..300_u32 {
            let batch = [1, 8, 32, 1000, u32::MAX][round as usize % 5];
            let counter = BatchCounter::new("many_again").batch(batch);
            let rest = lanes * u64::from(batch - 1);
            assert_eq!(
                (counter.sum(), counter.read(), counter.bound()),
                (0, 0, rest),
                "{round}"
            );
            assert_eq!(counter.home(), Home::Region);
            let mut sum = 0_i64;
            std::thread::scope(|scope| {
                let amounts: Vec<_> = (0..4).map(|_| random.next() as i64 >> 8).collect();
                for n in amounts {
                    sum += n;
                    let counter = &counter;
                    scope.spawn(move || {
                        counter.add(n - 3);
                        (0..3).for_each(|_| counter.inc());
                    });
                }
            });
            assert_eq!((counter.sum(), counter.bound()), (sum, rest));
            match round % 3 {
                0 => counter.add_local(i64::from(round)),
                1 => counter.add_batch(17, u32::MAX),
                _ => assert_eq!(counter.set(i64::MIN), sum),
            }
        }
    });
}

/// Two that have a counter of one name with different batches have one counter, with the bound of the wider.
#[test]
fn two_batches_of_one_name() {
    let narrow = BatchCounter::new("many_two").batch(2);
    let lanes = narrow.bound();
    let wide = BatchCounter::new("many_two").batch(100);
    narrow.inc();
    assert_eq!(narrow.bound(), lanes, "the other is not used yet");
    wide.inc();
    assert_eq!((narrow.bound(), wide.bound()), (99 * lanes, 99 * lanes));
    std::thread::scope(|scope| {
        for counter in [&narrow, &wide] {
            scope.spawn(move || {
                for round in 0..ROUNDS as i64 {
                    counter.add(round % 7);
                    counter.sub(round % 5);
                    assert_eq!(counter.compare(i64::MIN / 2), std::cmp::Ordering::Greater);
                }
            });
        }
    });
    let sum = 2 + 2
        * (0..ROUNDS as i64)
            .map(|round| round % 7 - round % 5)
            .sum::<i64>();
    assert_eq!((narrow.sum(), wide.sum()), (sum, sum));
    assert!(sum.abs_diff(narrow.read()) <= narrow.bound());
    // Without the wide one, what is known does not become better: its lanes may still hold that much.
    drop(wide);
    assert_eq!((narrow.sum(), narrow.bound()), (sum, 99 * lanes));
}

static FAMILY: Family<BatchCounter> =
    Family::new(BatchCounter::new("many_family").batch(8), ["label"]);

#[test]
fn members_of_a_family() {
    const LABELS: [&str; 3] = ["a", "b", "c"];
    std::thread::scope(|scope| {
        for thread in 0..THREADS as i64 {
            scope.spawn(move || {
                for round in 0..3_000 {
                    let label = LABELS[round % 3];
                    FAMILY
                        .with([label])
                        .add(if label == "b" { -thread } else { 1 });
                }
            });
        }
    });
    let rest = BatchCounter::new("many_family_other").batch(8).bound();
    for (label, sum) in LABELS.iter().zip([4_000, -6_000, 4_000]) {
        let member = FAMILY.with([label]);
        assert_eq!((member.sum(), member.bound()), (sum, rest), "{label}");
        assert!(sum.abs_diff(member.read()) <= rest);
    }
    assert!(FAMILY.remove(["a"]));
    let again = FAMILY.with(["a"]);
    assert_eq!((again.sum(), again.read(), again.bound()), (0, 0, rest));
}
