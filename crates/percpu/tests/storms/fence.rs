//! Once a guard is up and the fence has returned, no CPU lane grows any more.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use countersink_percpu::{Fence, FenceError, Lane, Mechanism, Segment, Slot};

use crate::common::child::{self, Setting};
use crate::common::{cpus, libc_rseq};

/// How often the guard goes up.
const ROUNDS: u64 = 10_000;
/// The same with more threads than CPUs, where a round waits for the scheduler.
const CROWDED_ROUNDS: u64 = 60;
/// In how many rounds the mutant must fail at least once.
const MUTANT_ROUNDS: u64 = 200_000;

/// A thread that adds while it may.
#[derive(Debug, Default)]
struct Worker {
    added: AtomicU64,
    refused: AtomicU64,
}

struct Scene<'a> {
    slot: Slot<'a>,
    cpus: u32,
    guard: AtomicU64,
    stop: AtomicBool,
    workers: Vec<Worker>,
}

impl<'a> Scene<'a> {
    fn new(segment: &'a Segment, workers: usize) -> Self {
        Scene {
            slot: segment.slot(0).expect("a word"),
            cpus: segment.cpus(),
            guard: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            workers: (0..workers).map(|_| Worker::default()).collect(),
        }
    }

    fn work(&self, worker: &Worker) {
        while !self.stop.load(Relaxed) {
            if self.slot.add_unless(1, &self.guard) {
                worker.added.store(worker.added.load(Relaxed) + 1, Relaxed);
            } else {
                worker
                    .refused
                    .store(worker.refused.load(Relaxed) + 1, Release);
            }
        }
    }

    /// What the CPU lanes hold.
    fn lanes(&self) -> Vec<Option<u64>> {
        (0..self.cpus)
            .map(|cpu| self.slot.load(Lane::Cpu(cpu)))
            .collect()
    }

    /// Waits until every worker has gone on by two since it stood at `before`.
    fn wait(&self, number: impl Fn(&Worker) -> u64) {
        let before: Vec<_> = self.workers.iter().map(&number).collect();
        while (self.workers.iter().zip(&before)).any(|(worker, before)| number(worker) < before + 2)
        {
            if cpus::allowed().len() <= self.workers.len() {
                std::thread::yield_now();
            }
            core::hint::spin_loop();
        }
    }

    /// Raises the guard again and again; returns in how many rounds a lane grew after `fence`, of
    /// how many. Stops at the first such round if there is to be one.
    fn rounds(&self, rounds: u64, stop_at_first: bool, fence: impl Fn()) -> (u64, u64) {
        let mut grew = 0;
        for round in 1..=rounds {
            self.guard.store(0, SeqCst);
            self.wait(|worker| worker.added.load(Relaxed));
            self.guard.store(1, Release);
            fence();
            let then = self.lanes();
            // Two refusals: whatever was under way has ended.
            self.wait(|worker| worker.refused.load(Acquire));
            grew += u64::from(self.lanes() != then);
            if grew > 0 && stop_at_first {
                return (grew, round);
            }
        }
        (grew, rounds)
    }

    /// Lets the workers run, each on a CPU of its own as far as there are enough, and this thread
    /// on the last.
    fn play(&self, rounds: u64, stop_at_first: bool, fence: impl Fn() + Sync) -> (u64, u64) {
        let allowed = cpus::allowed();
        std::thread::scope(|scope| {
            for (index, worker) in self.workers.iter().enumerate() {
                let cpu = allowed[index % allowed.len()];
                scope.spawn(move || {
                    cpus::pin(None, cpu);
                    self.work(worker);
                });
            }
            let last = allowed[allowed.len() - 1];
            let result = cpus::on(last, || self.rounds(rounds, stop_at_first, &fence));
            self.stop.store(true, SeqCst);
            result
        })
    }

    /// The sum is what the workers say that they have added.
    fn assert_exact(&self) {
        let added = self
            .workers
            .iter()
            .map(|worker| worker.added.load(SeqCst))
            .sum::<u64>();
        assert_eq!(self.slot.sum(), added);
    }
}

/// Workers beside this thread's CPU, so that a round is short.
fn beside() -> usize {
    (cpus::allowed().len() - 1).clamp(1, 3)
}

fn nothing_grows(workers: usize, rounds: u64) -> u64 {
    let fence = Fence::new().expect("Linux 5.10 and later have it");
    let segment = Segment::private().expect("memory");
    let scene = Scene::new(&segment, workers);
    let (grew, rounds) = scene.play(rounds, false, || fence.all_cpus().expect("registered"));
    scene.assert_exact();
    println!("{workers} workers: a lane grew in {grew} of {rounds} rounds");
    assert_eq!(grew, 0);
    scene.slot.sum()
}

fn has_sections() -> bool {
    countersink_percpu::choice().mechanism == Mechanism::Rseq
}

#[test]
fn nothing_grows_behind_the_fence() {
    assert!(has_sections());
    nothing_grows(beside(), ROUNDS);
    nothing_grows(2 * cpus::allowed().len(), CROWDED_ROUNDS);
}

#[test]
fn nothing_grows_behind_the_fence_with_own_registration() {
    let test = "fence::nothing_grows_behind_the_fence_with_own_registration";
    child::run_chosen(test, Setting::OwnRegistration, || {
        nothing_grows(beside(), ROUNDS / 4)
    });
}

/// Without the fence a section that has loaded the guard commits after the lanes were read: the
/// guard's store waits in one CPU's store buffer, the lane's in the other's.
#[test]
fn without_the_fence_it_grows() {
    if cpus::allowed().len() < 2 {
        println!("one CPU: every preemption aborts, so nothing can be under way");
        return;
    }
    let segment = Segment::private().expect("memory");
    let scene = Scene::new(&segment, beside());
    let (grew, rounds) = scene.play(MUTANT_ROUNDS, true, || {});
    println!("without a fence a lane grew in {grew} of {rounds} rounds");
    scene.assert_exact();
    assert!(grew > 0);
}

/// Nor is a fence of this CPU's memory enough: the section runs on another.
#[test]
fn with_a_fence_of_one_cpu_it_grows() {
    if cpus::allowed().len() < 2 {
        return;
    }
    let segment = Segment::private().expect("memory");
    let scene = Scene::new(&segment, beside());
    let fence = || std::sync::atomic::fence(SeqCst);
    let (grew, rounds) = scene.play(MUTANT_ROUNDS, true, fence);
    println!("with a fence of one CPU a lane grew in {grew} of {rounds} rounds");
    assert!(grew > 0);
}

/// Where there are no sections, nothing could be stopped, and the fence says so.
#[test]
fn there_is_no_fence_without_sections() {
    let test = "fence::there_is_no_fence_without_sections";
    child::run_chosen(test, Setting::Requested, || {
        let error = Fence::new().expect_err("locked operations");
        assert_eq!(error, FenceError::NoSections(Mechanism::LockedLanes));
        assert!(error.to_string().contains("locked operations"), "{error}");
        1
    });
}

/// Threads that are not registered take their add back.
#[test]
fn an_unregistered_thread_takes_its_add_back() {
    if !libc_rseq::registers() {
        return;
    }
    let segment = Segment::private().expect("memory");
    let slot = segment.slot::<u64>(0).expect("a word");
    let guard = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            libc_rseq::unregister_this_thread();
            assert!(slot.add_unless(5, &guard));
            guard.store(1, SeqCst);
            assert!(!slot.add_unless(7, &guard));
        });
    });
    assert_eq!((slot.sum(), slot.load(Lane::Shared)), (5, Some(5)));
}
