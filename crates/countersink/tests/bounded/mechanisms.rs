//! Estimates, sums and limits in storms, however the process counts.

use std::ffi::OsStr;

use countersink_percpu::{Mechanism, choice};

use crate::common::child::{alone, alone_with};
use crate::storm::{Plan, storm};
use crate::truth::{bracket, counter};

const PLAN: Plan = Plan {
    batch: 8,
    additions: 200_000,
    handlers: 1_000,
    moves: 200,
    ..Plan::USUAL
};

fn check(plan: Plan) {
    println!("{}", choice());
    let counter = counter("mechanisms", plan.batch);
    let (rest, mut sharp) = (counter.bound(), 0_u64);
    storm(counter, plan, |lines| {
        let (when, estimate) = bracket(lines, || counter.estimate());
        assert!(when.agrees(estimate), "{when:?} {estimate:?}");
        let (when, sum) = bracket(lines, || counter.sum());
        assert!(when.holds(sum), "{when:?} {sum}");
        sharp += u64::from(when.width() <= rest);
    });
    assert!(sharp > 0, "not watched");
    assert_eq!(counter.bound(), rest);
    assert!(counter.sync());
    let sum = counter.set(1000);
    assert!(!counter.limited_add(1000, 1), "{sum}");
    assert!(counter.limited_add(1001 + 2 * rest as i64, 1));
    assert_eq!(counter.sum(), 1001);
}

/// Where sections are there, they are used unless something else was asked for.
fn is_expected(asked: Mechanism) {
    let expected = match choice().mechanism {
        _ if cfg!(countersink_portable) => Mechanism::ThreadLanes,
        _ if cfg!(not(target_arch = "x86_64")) => Mechanism::LockedLanes,
        _ => asked,
    };
    assert_eq!(choice().mechanism, expected);
}

#[test]
fn registered_by_the_c_library_or_not() {
    let test = "mechanisms::registered_by_the_c_library_or_not";
    let off = OsStr::new("glibc.pthread.rseq=0");
    alone_with(test, &[("GLIBC_TUNABLES", off)], || {
        is_expected(Mechanism::Rseq);
        check(PLAN);
    });
}

#[test]
fn locked_lanes() {
    alone("mechanisms::locked_lanes", || {
        if cfg!(not(countersink_portable)) {
            countersink_percpu::request(Mechanism::LockedLanes)
                .expect("every Linux process can have them");
        }
        is_expected(Mechanism::LockedLanes);
        check(PLAN);
    });
}

/// Some or all threads count on the shared lane only.
#[test]
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
fn threads_that_are_not_registered() {
    alone("mechanisms::threads_that_are_not_registered", || {
        if !crate::libc_rseq::registers() {
            println!("the C library registers nobody here: nothing to take back");
            return;
        }
        for unregistered in [2, crate::storm::adders() / 2] {
            let plan = Plan {
                unregistered,
                ..PLAN
            };
            let counter = counter(&format!("mechanisms_{unregistered}"), plan.batch);
            storm(counter, plan, |lines| {
                let (when, estimate) = bracket(lines, || counter.estimate());
                assert!(when.agrees(estimate), "{when:?} {estimate:?}");
            });
        }
    });
}
