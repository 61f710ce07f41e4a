//! Processes that share a counter, and are killed in the middle of adding.
//!
//! After each round all adders are dead, so each of them had done the addition that it had announced, or not: the sum is
//! one of few that are possible, which tells what it is from there on.

use std::ops::ControlFlow;

use countersink::{BatchCounter, Estimate};

use crate::common::child::alone;
use crate::common::cpus::{pause, wait_until};
use crate::common::fork::fork;
use crate::common::log::{self, Line};
use crate::common::random::Random;
use crate::storm::{Plan, amount};
use crate::truth::{Counts, additions, at_death, bracket, counter, logged};
use crate::wrong::{Order, Published};

/// Processes of a round, which are all killed.
const PROCESSES: usize = 4;
const ROUNDS: u64 = 100;
const SEED: u64 = 0x0b17_0004;
const BATCHES: [u32; 3] = [1, 8, 32];
/// One round in so many repairs what the killed have left; before, it adds up.
const ROUNDS_PER_SYNC: u64 = 4;

/// Adds until it is killed.
fn work(counts: &dyn Counts, adder: usize, line: &Line, batch: u32, seed: u64) {
    let mut random = Random(seed);
    let plan = Plan {
        batch,
        ..Plan::USUAL
    };
    for round in 0.. {
        let n = amount(&mut random, round, &plan);
        logged(line, n, || {
            counts.add(adder, n);
            true
        });
        if random.below(500) == 0 {
            pause();
        }
    }
}

/// What the killed had added in all, if the sum can be told apart from all that is impossible.
fn added_by_the_killed(lines: &[Line], sum: i64, before: i64) -> Result<i64, String> {
    let deaths: Vec<_> = lines.iter().map(at_death).collect();
    let ended: i64 = deaths.iter().map(|death| death.0).sum();
    let found = sum - before;
    let possible = (0..1_u32 << deaths.len()).any(|chosen| {
        let done = |(adder, death): (usize, &(i64, i64))| (chosen >> adder & 1) as i64 * death.1;
        ended + deaths.iter().enumerate().map(done).sum::<i64>() == found
    });
    if possible {
        Ok(found)
    } else {
        Err(format!("{found} of {deaths:?}"))
    }
}

/// One counter, and how it goes on from round to round.
struct Server {
    counts: &'static dyn Counts,
    batch: u32,
    /// What the killed had added so far.
    sum: i64,
    /// While they run, samples can be taken too.
    is_sampled: bool,
    samples: u64,
    /// Rounds after which something was left in the middle.
    left: u64,
}

impl Server {
    fn new(counts: &'static dyn Counts, batch: u32, is_sampled: bool) -> Self {
        Server {
            counts,
            batch,
            sum: 0,
            is_sampled,
            samples: 0,
            left: 0,
        }
    }

    fn sample(&mut self, lines: &[Line]) {
        let (mut bracket, estimate) = bracket(lines, || self.counts.estimate());
        bracket.low += self.sum;
        bracket.high += self.sum;
        assert!(bracket.agrees(estimate), "{bracket:?} {estimate:?}");
        self.samples += 1;
    }

    /// Runs processes and kills them; tells what is wrong afterwards.
    fn round(&mut self, random: &mut Random, rest: u64) -> Result<(), String> {
        let lines = log::shared(PROCESSES);
        let processes: Vec<_> = lines
            .iter()
            .enumerate()
            .map(|(adder, line)| {
                let seed = random.next();
                fork(|| work(self.counts, adder, line, self.batch, seed))
            })
            .collect();
        for process in processes {
            let until = additions(lines) + random.below(3_000);
            while additions(lines) < until {
                if self.is_sampled {
                    self.sample(lines);
                }
                pause();
            }
            process.kill();
        }
        let sum = self.counts.sum();
        self.sum += added_by_the_killed(lines, sum, self.sum)?;
        let estimate = self.counts.estimate();
        self.left += u64::from(estimate.bound > rest);
        if sum.abs_diff(estimate.value) > estimate.bound {
            return Err(format!("{sum} is not {estimate:?}"));
        }
        Ok(())
    }
}

/// After a sync, a counter is as good as a new one.
fn sync(counter: &BatchCounter, rest: u64) {
    let sum = counter.sum();
    assert!(counter.sync(), "nobody is in the middle");
    let Estimate { value, bound } = counter.estimate();
    assert_eq!(bound, rest);
    let off = sum.wrapping_sub(value).unsigned_abs();
    assert!(off <= bound, "{sum} {value}");
    assert_eq!(counter.sum(), sum);
}

#[test]
fn leave_estimates_within_the_bound() {
    alone("killed::leave_estimates_within_the_bound", || {
        let mut random = Random(SEED);
        let mut servers = BATCHES.map(|batch| {
            let counter = counter(&format!("killed_{batch}"), batch);
            (counter, counter.bound(), Server::new(counter, batch, true))
        });
        let mut rounds = 0;
        let mut left = 0;
        while rounds < ROUNDS || (left == 0 && rounds < 10 * ROUNDS) {
            for (counter, rest, server) in &mut servers {
                server.round(&mut random, *rest).expect("right");
                if rounds % ROUNDS_PER_SYNC == 0 {
                    sync(counter, *rest);
                }
            }
            rounds += 1;
            left = servers.iter().map(|(_, _, server)| server.left).sum();
        }
        for (_, rest, server) in &servers {
            let kills = rounds * PROCESSES as u64;
            println!(
                "seed {SEED:#x}, batch {}: {kills} kills, {} samples, {} rounds with something left, bound {rest}",
                server.batch, server.samples, server.left
            );
        }
        assert!(left > 0, "nobody was killed in the middle");
    });
}

/// Whoever is killed in the middle of the largest amounts leaves a gap as large.
#[test]
fn leave_the_bound_right_for_extremes() {
    alone("killed::leave_the_bound_right_for_extremes", || {
        let counter = counter("killed_extremes", 32);
        let (rest, mut random, mut left) = (counter.bound(), Random(SEED), 0);
        for round in 0..200 {
            let [line] = log::shared(1) else {
                panic!("one line");
            };
            let n = [i64::MIN, i64::MAX][round % 2];
            let process = fork(|| {
                loop {
                    counter.add(n);
                    line.add(0, 1);
                }
            });
            let until = random.below(2_000);
            wait_until(|| line.get(0) > until);
            process.kill();
            let (sum, estimate) = (counter.sum(), counter.estimate());
            let off = sum.wrapping_sub(estimate.value).unsigned_abs();
            assert!(off <= estimate.bound, "{sum} is not {estimate:?}");
            left += u64::from(estimate.bound > rest);
            sync(counter, rest);
        }
        println!("seed {SEED:#x}: something left after {left} of 200 kills");
        assert!(left > 0, "nobody was killed in the middle");
    });
}

/// How many rounds it takes until something is wrong, and what that is.
fn rounds_until_wrong(counts: &'static Published, batch: u32) -> Option<(u64, String)> {
    let mut random = Random(SEED);
    let mut server = Server::new(counts, batch, false);
    let found = (0..ROUNDS).try_for_each(|round| match server.round(&mut random, 0) {
        Ok(()) => {
            counts.repair();
            ControlFlow::Continue(())
        }
        Err(what) => ControlFlow::Break((round, what)),
    });
    found.break_value()
}

/// The same is found where words are moved in a wrong order, and where the bound is told without the gap between them.
#[test]
fn find_orders_that_do_not_survive_them() {
    alone("killed::find_orders_that_do_not_survive_them", || {
        let right = Published::new(PROCESSES, 1, Order::AroundTheLane, false);
        assert_eq!(rounds_until_wrong(right, 1), None, "right as it is");
        for (order, forgets_the_gap) in [
            (Order::Behind, false),
            (Order::Before, false),
            (Order::AroundTheLane, true),
        ] {
            let wrong = Published::new(PROCESSES, 1, order, forgets_the_gap);
            let found = rounds_until_wrong(wrong, 1);
            println!("seed {SEED:#x}, {order:?}, {forgets_the_gap}: {found:?}");
            assert!(found.is_some(), "{order:?} was not found");
        }
    });
}
