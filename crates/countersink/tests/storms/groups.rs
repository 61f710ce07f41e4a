//! Events that are read together.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::common::child::alone;
use crate::common::cpus::{allowed, pause, pin, wait_until};
use crate::common::log::{self, Line, total};
use crate::common::read;

const THREADS: usize = 3;
const READS: u64 = 200_000;

countersink::event_group! {
    /// A thread counts the second event before the first.
    static ORDERED: OrderedEvents = "groups_ordered" {
        /// Counted after the other
        later,
        /// Counted before the other
        sooner,
    }
}

countersink::event_group! {
    /// Nothing.
    static OFF: OffEvents = "groups_off" when (any()) {
        /// Never
        never,
        /// Nor this
        neither,
    }
}

#[test]
fn of_a_group_that_is_off_have_no_size() {
    alone("groups::of_a_group_that_is_off_have_no_size", || {
        assert_eq!(size_of::<OffEvents>(), 0);
        OFF.never.inc();
        OFF.neither.add(3);
        assert_eq!((OFF.never.sum(), OFF.neither.take()), (0, 0));
        assert_eq!((OFF.read(), OFF.take()), ([], []));
        ORDERED.later.inc();
        let snapshot = read::snapshot();
        // All of a group are there at the first use of any.
        let names: Vec<_> = snapshot
            .metrics
            .iter()
            .map(|metric| (&*metric.name, metric.group.as_deref()))
            .collect();
        let group = Some("groups_ordered");
        assert_eq!(
            names,
            [
                ("groups_ordered_later", group),
                ("groups_ordered_sooner", group)
            ]
        );
    });
}

const SOONER: usize = 0;
const LATER: usize = 1;

/// Counts on one CPU, or on one after the other.
fn count(log: &Line, first_cpu: usize, is_pinned: bool, stop: &AtomicBool) {
    let mut cpu = first_cpu;
    while !stop.load(Relaxed) {
        pin(allowed()[cpu % allowed().len()]);
        cpu += usize::from(!is_pinned);
        for _ in 0..2000 {
            ORDERED.sooner.inc();
            log.add(SOONER, 1);
            ORDERED.later.inc();
            log.add(LATER, 1);
        }
        pause();
    }
}

/// What a sweep gives for threads that stay on their CPUs: an event that is read before another, and
/// counted after it, is not more.
///
/// And for all threads: each event is at least what it was when the sweep began, and at most what it was when
/// it ended.
fn sweeps(is_pinned: bool) {
    let logs = log::shared(THREADS);
    allowed();
    let stop = AtomicBool::new(false);
    let (mut apart, mut wrong, mut reordered) = (0, 0, 0);
    std::thread::scope(|scope| {
        for (thread, log) in logs.iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || count(log, thread, is_pinned, stop));
        }
        let logged = || [LATER, SOONER].map(|word| total(logs, word));
        let mut earlier = 0;
        for read in 0..READS {
            let before = logged();
            let [(_, later), (_, sooner)] = ORDERED.read();
            let after = logged();
            let is_between =
                |at: usize, value: u64| (before[at]..=after[at] + THREADS as u64).contains(&value);
            assert!(is_between(0, later), "{before:?} {later} {after:?}");
            assert!(is_between(1, sooner), "{before:?} {sooner} {after:?}");
            if is_pinned {
                assert!(later <= sooner, "{later} of {sooner}");
            }
            apart += u64::from(later != sooner);
            // Sums that were not made in one sweep: one from the read before.
            wrong += u64::from(!is_between(1, earlier));
            reordered += u64::from(later > earlier);
            earlier = sooner;
            if read % 50 == 0 {
                let until = total(logs, LATER) + 100;
                wait_until(|| total(logs, LATER) >= until);
            }
        }
        stop.store(true, Relaxed);
    });
    println!(
        "pinned {is_pinned}: {READS} reads, {apart} in between; of two sweeps: {wrong} wrong, \
         {reordered} in the wrong order"
    );
    let counted = total(logs, SOONER);
    assert_eq!(
        ORDERED.read(),
        [
            ("groups_ordered_later", counted),
            ("groups_ordered_sooner", counted)
        ]
    );
    let snapshot = read::snapshot();
    assert_eq!(read::counter(&snapshot, "groups_ordered_sooner"), counted);
    assert_eq!(
        ORDERED.take(),
        [
            ("groups_ordered_later", counted),
            ("groups_ordered_sooner", counted)
        ]
    );
    assert_eq!((ORDERED.later.sum(), ORDERED.sooner.sum()), (0, 0));
    assert!(wrong > 0 && reordered > 0, "not a storm");
}

#[test]
fn are_of_one_sweep() {
    alone("groups::are_of_one_sweep", || {
        ORDERED.later.add(0);
        sweeps(true);
        sweeps(false);
    });
}
