//! Every operation in every storm, in each setting of the process.

use countersink_percpu::Segment;
use libc::{ENOSYS, EPERM};

use crate::common::child::{self, Setting};
use crate::operations::{self, Add};
use crate::storm::{Plan, exact};

/// Eight threads for each CPU, and another thread that sends them signals as fast as it can.
pub(crate) const SIGNALS: Plan = Plan {
    workers_per_cpu: 8,
    operations: 1_000_000,
    signals: 500,
    timers: 0,
    moves: 0,
    unregistered: 0,
};

/// One thread for each CPU, and a timer for each thread.
const TIMERS: Plan = Plan {
    workers_per_cpu: 1,
    operations: 1_000_000,
    signals: 0,
    timers: 2_000,
    moves: 0,
    unregistered: 0,
};

/// Two threads for each CPU, moved to and fro.
const MOVES: Plan = Plan {
    workers_per_cpu: 2,
    operations: 1_000_000,
    signals: 0,
    timers: 0,
    moves: 200,
    unregistered: 0,
};

/// All at once; handlers interrupt handlers.
const EVERYTHING: Plan = Plan {
    workers_per_cpu: 3,
    operations: 500_000,
    signals: 50,
    timers: 1_000,
    moves: 40,
    unregistered: 0,
};

/// One operation much longer.
const LONG: Plan = Plan {
    workers_per_cpu: 8,
    operations: 100_000_000,
    signals: 1_000,
    timers: 5_000,
    moves: 200,
    unregistered: 0,
};

fn every_operation(plan: &Plan) -> u64 {
    let segment = Segment::private().expect("memory");
    operations::for_each(&segment, |counter| exact(counter, plan))
}

#[test]
fn signals() {
    every_operation(&SIGNALS);
}

#[test]
fn timers() {
    every_operation(&TIMERS);
}

#[test]
fn moves() {
    every_operation(&MOVES);
}

#[test]
fn one_operation_long() {
    let segment = Segment::private().expect("memory");
    exact(&Add(segment.slot(0).expect("a word")), &LONG);
}

#[test]
fn everything_at_once_with_own_registration() {
    let test = "exact::everything_at_once_with_own_registration";
    child::run_chosen(test, Setting::OwnRegistration, || {
        every_operation(&EVERYTHING)
    });
}

#[test]
fn everything_at_once_where_the_kernel_refuses() {
    let test = "exact::everything_at_once_where_the_kernel_refuses";
    for error in [EPERM, ENOSYS] {
        child::run_chosen(test, Setting::Refused(error), || {
            every_operation(&EVERYTHING)
        });
    }
}

#[test]
fn everything_at_once_on_locked_lanes() {
    let test = "exact::everything_at_once_on_locked_lanes";
    child::run_chosen(test, Setting::Requested, || every_operation(&EVERYTHING));
}

/// Sections on some segments and locked operations on others, in one process.
#[test]
fn everything_at_once_on_both_kinds_of_lanes() {
    every_operation(&EVERYTHING);
    let segment = Segment::private_locked().expect("memory");
    operations::for_each(&segment, |counter| exact(counter, &EVERYTHING));
}

/// Threads that are not registered count on the shared lane beside the others.
#[test]
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
fn unregistered_threads_among_registered_ones() {
    use countersink_percpu::Lane;
    if !crate::common::libc_rseq::registers() {
        println!("the C library registers nobody here: nothing to take back");
        return;
    }
    let plan = Plan {
        unregistered: 2,
        ..EVERYTHING
    };
    let segment = Segment::private().expect("memory");
    operations::for_each(&segment, |counter| exact(counter, &plan));
    let on_shared_lane = segment
        .slot::<u64>(0)
        .and_then(|slot| slot.load(Lane::Shared));
    assert!(
        on_shared_lane.is_some_and(|held| held > 0),
        "nobody was unregistered"
    );
}
