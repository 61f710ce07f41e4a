//! A process that is single-stepped: every section is aborted, so operations end on the shared lane,
//! and the totals are exact.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use countersink_percpu::{Lane, Segment};
use libc::{EPERM, c_int};

use crate::common::child::{self, Setting};
use crate::common::{cpus, lanes};

/// Operations of each kind. Each is 16 attempts, and so some 500 steps of 10 to 20 us.
const OPERATIONS: u64 = 20;
/// Exit statuses of the child.
const EXACT: c_int = 0;
const WRONG: c_int = 1;
const NOT_TRACED: c_int = 77;

/// What the child does, all of it stepped. No lock, no allocation. Returns how many results or
/// totals were wrong.
fn operate(segment: &Segment) -> u64 {
    let slot = |index| segment.slot::<u64>(index).ok_or(());
    let pair = |index| segment.pair::<u64>(index).ok_or(());
    let wrong = |right: bool| u64::from(!right);
    let run = || -> Result<u64, ()> {
        let guard = AtomicU64::new(0);
        let mut failures = 0;
        for n in 1..=OPERATIONS {
            slot(0)?.inc();
            slot(1)?.add(n);
            slot(2)?.add_release(n);
            failures += wrong(slot(3)?.add_return(1) == n);
            failures += wrong(slot(4)?.compare_exchange(n - 1, n) == Ok(n - 1));
            failures += wrong(slot(4)?.compare_exchange(n - 1, n) == Err(n));
            failures += wrong(slot(5)?.exchange(n) == n - 1);
            failures += wrong(slot(6)?.store_max(n) && !slot(6)?.store_max(n));
            failures += wrong(!slot(7)?.store_min(n));
            failures += wrong(slot(8)?.add_unless(n, &guard));
            pair(5)?.add([n, 1]);
            failures += wrong(pair(6)?.compare_exchange([n - 1, 0], [n, 0]) == Ok([n - 1, 0]));
        }
        let triangle = OPERATIONS * (OPERATIONS + 1) / 2;
        let sums = [
            OPERATIONS, triangle, triangle, OPERATIONS, OPERATIONS, OPERATIONS, OPERATIONS, 0,
            triangle,
        ];
        for (index, sum) in sums.into_iter().enumerate() {
            failures += wrong(slot(index)?.sum() == sum);
        }
        failures += wrong(pair(5)?.sum() == [triangle, OPERATIONS]);
        failures += wrong(pair(6)?.sum() == [OPERATIONS, 0]);
        Ok(failures)
    };
    run().unwrap_or(u64::MAX)
}

/// Steps a forked child through all of it; returns the steps, or `None` where tracing is refused.
fn step(segment: &Segment) -> Option<u64> {
    // SAFETY: the child does system calls and operations only, and ends by _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        // SAFETY: asks the parent to trace, and waits for it.
        unsafe {
            if libc::ptrace(libc::PTRACE_TRACEME) != 0 {
                libc::_exit(NOT_TRACED);
            }
            libc::raise(libc::SIGSTOP);
        }
        let status = if operate(segment) == 0 { EXACT } else { WRONG };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(status) };
    }
    let mut steps = 0;
    loop {
        let mut status = 0;
        // SAFETY: our child; the call fills the status.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        if libc::WIFEXITED(status) {
            return match libc::WEXITSTATUS(status) {
                EXACT => Some(steps),
                NOT_TRACED => None,
                _ => panic!("a total is wrong: {segment:?}"),
            };
        }
        assert!(libc::WIFSTOPPED(status), "killed: {status:#x}");
        let first = libc::WSTOPSIG(status) == libc::SIGSTOP && steps == 0;
        assert!(
            first || libc::WSTOPSIG(status) == libc::SIGTRAP,
            "{status:#x}"
        );
        // SAFETY: a stopped child of ours.
        let result = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, pid, 0, 0) };
        assert_eq!(result, 0);
        steps += 1;
    }
}

/// Steps through everything, and looks where the counts are.
fn stepped() -> u64 {
    // A step is then two switches on one CPU, and no wake-up of another; and the lane is known.
    cpus::pin(None, cpus::current());
    let segment = Segment::shared().expect("memory");
    let Some(steps) = step(&segment) else {
        println!("tracing is not allowed here");
        return 1;
    };
    let slot = segment.slot::<u64>(0).expect("a word");
    let on_shared_lane = slot.load(Lane::Shared);
    println!(
        "{steps} steps, {on_shared_lane:?} of {} on the shared lane",
        slot.sum()
    );
    assert_eq!(slot.sum(), OPERATIONS);
    let stepped_sections = segment.mechanism() == countersink_percpu::Mechanism::Rseq;
    assert_eq!(
        on_shared_lane,
        Some(if stepped_sections { OPERATIONS } else { 0 })
    );
    // The stepped child has not changed how this process counts.
    let before: u64 = cpu_lanes(&segment);
    slot.inc();
    assert_eq!(cpu_lanes(&segment), before + 1);
    steps
}

fn cpu_lanes(segment: &Segment) -> u64 {
    let lanes = (0..segment.cpus()).map(|cpu| lanes::word(segment, Lane::Cpu(cpu), 0));
    lanes.map(|word| word.load(SeqCst)).sum()
}

#[test]
fn every_operation_ends() {
    for setting in [
        Setting::AsIs,
        Setting::OwnRegistration,
        Setting::Refused(EPERM),
    ] {
        child::run_chosen("stepped::every_operation_ends", setting, stepped);
    }
}
