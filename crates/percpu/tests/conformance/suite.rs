//! All operations at the edges of their operands, and random sequences.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use countersink_percpu::spec::Op;
use countersink_percpu::{Lane, Segment, Word};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::case::Case;
use crate::common::lanes;

/// What every run starts its random numbers from.
const SEED: u64 = 0x0c0a_57e4;
/// Random sequences for each kind of word.
const SEQUENCES: u32 = 200;
/// The operations of a sequence.
const LONGEST: usize = 40;

/// Where wrapping, signs and comparisons change.
const EDGES: [u64; 9] = [
    0,
    1,
    2,
    i64::MAX as u64 - 1,
    i64::MAX as u64,
    i64::MIN as u64,
    i64::MIN as u64 + 1,
    u64::MAX - 1,
    u64::MAX,
];

/// Where a thread must count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// On this lane.
    #[cfg_attr(
        not(all(target_os = "linux", not(countersink_portable))),
        allow(dead_code, reason = "no thread can be told to use one")
    )]
    Lane(Lane),
    /// On some CPU lane, always the same.
    AnyCpuLane,
}

/// Runs everything on this thread, which stays on one lane. Returns how many operations there were.
pub(crate) fn run(segment: &Segment, expected: Expected) -> u64 {
    let lane = find_lane(segment);
    match expected {
        Expected::Lane(expected) => assert_eq!(lane, expected),
        Expected::AnyCpuLane => assert!(matches!(lane, Lane::Cpu(_)), "{lane:?}"),
    }
    let case = Case { segment, lane };
    let done =
        edges::<u64>(&case) + edges::<i64>(&case) + random::<u64>(&case) + random::<i64>(&case);
    assert_eq!(find_lane(segment), lane, "the thread must stay on one lane");
    done
}

/// The lane on which this thread counts.
pub(crate) fn find_lane(segment: &Segment) -> Lane {
    const PROBE: usize = 5;
    let held = |lane| lanes::word(segment, lane, PROBE).load(Relaxed);
    let before: Vec<_> = lanes::all(segment).map(held).collect();
    segment.slot::<u64>(PROBE).expect("a word").add(1);
    let mut changed = lanes::all(segment)
        .zip(before)
        .filter(|(lane, before)| held(*lane) != *before);
    let (lane, before) = changed.next().expect("one lane has changed");
    assert_eq!(held(lane), before + 1);
    assert!(changed.next().is_none(), "two lanes have changed");
    lane
}

/// Every operation on every combination of edges.
fn edges<T: Word + core::fmt::Debug>(case: &Case<'_>) -> u64 {
    let mut done = 0;
    let mut check = |op, held, guard| {
        case.check::<T>(op, held, guard);
        done += 1;
    };
    for held in EDGES {
        let next = held.wrapping_mul(3);
        for n in EDGES {
            check(Op::Add(n), [held, next], 0);
            check(Op::AddReturn(n), [held, next], 0);
            check(Op::Exchange(n), [held, next], 0);
            check(minimum::<T>(n), [held, next], 0);
            check(maximum::<T>(n), [held, next], 0);
            for guard in EDGES {
                check(Op::AddUnless(n), [held, next], guard);
            }
            for most in [0, 1, 31, 1 << 62] {
                // Near the second word, and anywhere.
                for held in [[next.wrapping_add(n), next], [held, next]] {
                    check(Op::AddWithin { n, most }, held, 0);
                    for (guard, limit) in [(0, 0), (n, 0), (0, n), (n, next)] {
                        let limit = limit as i64;
                        check(Op::AddWithinAtMost { n, most, limit }, held, guard);
                        check(Op::AddWithinAtLeast { n, most, limit }, held, guard);
                    }
                }
            }
            for new in EDGES {
                check(Op::CompareExchange { old: n, new }, [held, next], 0);
            }
            for other in EDGES {
                check(Op::AddPair([n, other]), [held, next], 0);
                let new = [other, n];
                check(
                    Op::CompareExchangePair {
                        old: [held, other],
                        new,
                    },
                    [held, n],
                    0,
                );
                check(
                    Op::CompareExchangePair {
                        old: [n, other],
                        new,
                    },
                    [held, other],
                    0,
                );
            }
        }
    }
    done
}

/// Sequences of operations, the lane compared after each.
fn random<T: Word + core::fmt::Debug + 'static>(case: &Case<'_>) -> u64 {
    let config = Config {
        cases: SEQUENCES,
        rng_seed: RngSeed::Fixed(SEED),
        failure_persistence: None,
        ..Config::default()
    };
    println!("{SEQUENCES} sequences with seed {SEED:#x}");
    let done = Cell::new(0);
    let start = [value(), value()];
    let ops = proptest::collection::vec((op::<T>(), guard()), 1..LONGEST);
    let result = TestRunner::new(config).run(&(start, ops), |(start, ops)| {
        case.fill(start);
        let mut held = start;
        for (op, guard) in ops {
            let op = sometimes_matching(op, held);
            let decision = op.decide(held, guard);
            let outcome = case.apply::<T>(0, op, guard);
            held = decision.commit.unwrap_or(held);
            prop_assert_eq!(outcome, decision.outcome, "{:x?}", op);
            prop_assert_eq!(case.held(), held, "stored by {:x?}", op);
            done.set(done.get() + 1);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{:?}: {error}", case.lane));
    done.get()
}

/// A random `old` never matches: every other one, by its lowest bit, is made to. And random words are never near each
/// other: what is added takes the first to the second, every other time.
fn sometimes_matching(op: Op, held: [u64; 2]) -> Op {
    let near = |n: u64| match n % 2 {
        0 => held[1].wrapping_sub(held[0]).wrapping_add(n as i8 as u64),
        _ => n,
    };
    match op {
        Op::AddWithin { n, most } => Op::AddWithin { n: near(n), most },
        Op::AddWithinAtMost { n, most, limit } => Op::AddWithinAtMost {
            n: near(n),
            most,
            limit,
        },
        Op::AddWithinAtLeast { n, most, limit } => Op::AddWithinAtLeast {
            n: near(n),
            most,
            limit,
        },
        Op::CompareExchange { old, new } if old % 2 == 0 => {
            Op::CompareExchange { old: held[0], new }
        }
        Op::CompareExchangePair { old, new } => match old[0] % 4 {
            0 => Op::CompareExchangePair { old: held, new },
            1 => Op::CompareExchangePair {
                old: [held[0], old[1]],
                new,
            },
            2 => Op::CompareExchangePair {
                old: [old[0], held[1]],
                new,
            },
            _ => op,
        },
        _ => op,
    }
}

fn value() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![proptest::sample::select(EDGES.to_vec()), any::<u64>()]
}

fn guard() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), value()]
}

fn op<T: Word + 'static>() -> impl Strategy<Value = Op> {
    prop_oneof![
        value().prop_map(Op::Add),
        value().prop_map(Op::AddReturn),
        (value(), value()).prop_map(|(old, new)| Op::CompareExchange { old, new }),
        value().prop_map(Op::Exchange),
        value().prop_map(minimum::<T>),
        value().prop_map(maximum::<T>),
        value().prop_map(Op::AddUnless),
        (near(), reach()).prop_map(|(n, most)| Op::AddWithin { n, most }),
        (near(), reach(), value()).prop_map(|(n, most, limit)| Op::AddWithinAtMost {
            n,
            most,
            limit: limit as i64
        }),
        (near(), reach(), value()).prop_map(|(n, most, limit)| Op::AddWithinAtLeast {
            n,
            most,
            limit: limit as i64
        }),
        [value(), value()].prop_map(Op::AddPair),
        ([value(), value()], [value(), value()])
            .prop_map(|(old, new)| Op::CompareExchangePair { old, new }),
    ]
}

/// What is added to words that are to stay near each other.
fn near() -> impl Strategy<Value = u64> {
    prop_oneof![(-40..40_i64).prop_map(|n| n as u64), value()]
}

/// How far words may be from each other.
fn reach() -> impl Strategy<Value = u64> {
    prop_oneof![0..64_u64, Just(1 << 62)]
}

fn minimum<T: Word>(v: u64) -> Op {
    if T::SIGNED {
        Op::StoreMinSigned(v as i64)
    } else {
        Op::StoreMinUnsigned(v)
    }
}

fn maximum<T: Word>(v: u64) -> Op {
    if T::SIGNED {
        Op::StoreMaxSigned(v as i64)
    } else {
        Op::StoreMaxUnsigned(v)
    }
}
