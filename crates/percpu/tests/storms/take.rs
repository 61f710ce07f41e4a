//! Taking and summing while others add.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use countersink_percpu::Segment;

#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
use crate::common::{cpus, lanes};
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
use countersink_percpu::Lane;

const ADDERS: u64 = 4;
const ADDS: u64 = 8_000_000;
const TAKERS: usize = 2;
/// What is left behind by each take.
const LEFT: u64 = 1_000_000_007;

/// All that was taken and what is left is all that was added.
#[test]
fn takes_and_the_rest_are_all_that_was_added() {
    let segment = Segment::private().expect("memory");
    let slot = segment.slot::<u64>(0).expect("a word");
    let stop = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS)
            .map(|taker| {
                let stop = &stop;
                scope.spawn(move || {
                    // One takes all; the other leaves something, which the next finds.
                    let left = LEFT * taker as u64;
                    let (mut taken, mut takes) = (0_u64, 0_u64);
                    while !stop.load(Relaxed) {
                        taken = taken.wrapping_add(slot.replace(left)).wrapping_sub(left);
                        takes += 1;
                    }
                    (taken, takes)
                })
            })
            .collect();
        let adders: Vec<_> = (0..ADDERS)
            .map(|_| scope.spawn(|| (0..ADDS).for_each(|_| slot.inc())))
            .collect();
        for adder in adders {
            adder.join().expect("an adder ends well");
        }
        stop.store(true, SeqCst);
        let taken = takers
            .into_iter()
            .map(|taker| taker.join().expect("a taker"));
        taken.collect::<Vec<_>>()
    });
    println!("(taken, takes) of each: {taken:?}");
    let sum = taken
        .iter()
        .fold(slot.sum(), |sum, (taken, _)| sum.wrapping_add(*taken));
    assert_eq!(sum, ADDERS * ADDS);
    assert!(taken.iter().all(|(_, takes)| *takes > 0));
}

/// A sum lies between what had been added when it began and what had been when it ended.
#[test]
fn a_sum_is_a_value_that_was_there() {
    let segment = Segment::private().expect("memory");
    let slot = segment.slot::<u64>(0).expect("a word");
    // Counted before and after the add itself, on other words of the same kind.
    let (begun, ended) = (Count::default(), Count::default());
    let stop = AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0_u64;
            while !stop.load(Relaxed) {
                let least = ended.get();
                let sum = slot.sum();
                let most = begun.get();
                assert!((least..=most).contains(&sum), "{least} <= {sum} <= {most}");
                reads += 1;
            }
            reads
        });
        let adders: Vec<_> = (0..ADDERS)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..ADDS / 16 {
                        begun.inc();
                        slot.inc();
                        ended.inc();
                    }
                })
            })
            .collect();
        for adder in adders {
            adder.join().expect("an adder ends well");
        }
        stop.store(true, SeqCst);
        reader.join().expect("the reader ends well")
    });
    println!("{reads} reads");
    assert!(reads > 0);
    assert_eq!(slot.sum(), ADDERS * ADDS / 16);
}

/// An ordinary shared count.
#[derive(Debug, Default)]
struct Count(std::sync::atomic::AtomicU64);

impl Count {
    fn inc(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    fn get(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

/// A take that zeroes the lanes loses what is added meanwhile.
#[test]
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
fn a_take_that_writes_lanes_is_found() {
    let segment = Segment::private().expect("memory");
    let slot = segment.slot::<u64>(0).expect("a word");
    let take = || {
        let lanes = (0..segment.cpus()).map(Lane::Cpu);
        let taken = lanes.map(|lane| lanes::word(&segment, lane, 0).swap(0, SeqCst));
        taken.fold(0, u64::wrapping_add)
    };
    let allowed = cpus::allowed();
    let (here, there) = (allowed[0], allowed[allowed.len() - 1]);
    let wrong = || {
        let stop = AtomicBool::new(false);
        let taken = std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                cpus::pin(None, here);
                let mut taken = 0_u64;
                while !stop.load(Relaxed) {
                    taken = taken.wrapping_add(take());
                }
                taken
            });
            cpus::on(there, || (0..ADDS / 8).for_each(|_| slot.inc()));
            stop.store(true, SeqCst);
            taker.join().expect("the taker ends well")
        });
        taken.wrapping_add(take()) != ADDS / 8
    };
    assert!(here == there || (0..20).any(|_| wrong()));
}
