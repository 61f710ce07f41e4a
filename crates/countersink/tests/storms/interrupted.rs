//! Forks beside a thread that registers.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use countersink::{Counter, Family, region};

use crate::common::child::alone;
use crate::common::fork::fork;

static CHILDREN: Family<Counter> = Family::new(Counter::new("interrupted_children"), ["number"]);
/// How many members the parent has made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// The parent goes on to register while the child copies the region. Copied from its beginning, entries
/// came to be used twice.
#[test]
fn a_child_leaves_the_region_while_its_parent_registers() {
    alone(
        "interrupted::a_child_leaves_the_region_while_its_parent_registers",
        || {
            CHILDREN.with(["first"]).inc();
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Relaxed) && MADE.load(Relaxed) < 50_000 {
                        let number = MADE.load(Relaxed);
                        CHILDREN.with([&number.to_string()]).inc();
                        MADE.store(number + 1, Release);
                    }
                });
                for _ in 0..60 {
                    let before = MADE.load(Acquire);
                    fork(|| leave_and_count(before)).wait_well();
                }
                stop.store(true, Relaxed);
            });
        },
    );
}

/// Uses names that the parent is registering just now, and others.
fn leave_and_count(from: usize) {
    region::unshare().expect("a region of its own");
    let others: Family<Counter> = Family::new(Counter::new("interrupted_others"), ["number"]);
    let members: Vec<_> = (from..from + 60)
        .map(|number| CHILDREN.with([&number.to_string()]))
        .collect();
    let more: Vec<_> = (0..60)
        .map(|number| others.with([&number.to_string()]))
        .collect();
    members.iter().for_each(|member| member.add(1000));
    more.iter().for_each(|member| member.inc());
    assert!(members.iter().all(|member| member.sum() == 1000));
    assert!(more.iter().all(|member| member.sum() == 1));
}
