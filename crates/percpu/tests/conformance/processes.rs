//! Each setting in a process of its own, and what a process may ask for.

use countersink_percpu::{Lane, Mechanism, RequestError, Segment, choice, request};
use libc::{ENOSYS, EPERM};

use crate::common::child::{self, Setting};
use crate::common::cpus;
use crate::suite::{self, Expected};

/// The suite on each allowed CPU.
fn on_every_cpu(segment: &Segment) -> u64 {
    let run_on = |cpu: &u32| {
        let expected = match choice().mechanism {
            Mechanism::ThreadLanes => Expected::AnyCpuLane,
            _ => Expected::Lane(Lane::Cpu(*cpu)),
        };
        cpus::on(*cpu, || suite::run(segment, expected))
    };
    cpus::allowed().iter().map(run_on).sum()
}

fn conforms(test: &str, setting: Setting) {
    child::run_chosen(test, setting, || {
        let segment = Segment::private().expect("memory");
        let done = on_every_cpu(&segment);
        println!("{done} operations");
        done
    });
}

#[test]
fn as_this_system_is() {
    conforms("processes::as_this_system_is", Setting::AsIs);
}

#[test]
fn own_registration() {
    conforms("processes::own_registration", Setting::OwnRegistration);
}

#[test]
fn locked_lanes_requested() {
    conforms("processes::locked_lanes_requested", Setting::Requested);
}

#[test]
fn refused_by_the_kernel() {
    let test = "processes::refused_by_the_kernel";
    conforms(test, Setting::Refused(EPERM));
    conforms(test, Setting::Refused(ENOSYS));
}

/// Children share the memory (where there is such) and count on the same lanes.
#[test]
#[cfg(not(countersink_portable))]
fn shared_memory() {
    let segment = Segment::shared().expect("memory");
    on_every_cpu(&segment);
}

#[test]
fn a_request_comes_before_the_first_use() {
    child::run(
        "processes::a_request_comes_before_the_first_use",
        Setting::AsIs,
        || {
            // What cannot be had is refused, and nothing is chosen by that.
            let (absent, other) = match cfg!(countersink_portable) {
                true => (Mechanism::LockedLanes, Mechanism::Rseq),
                false => (Mechanism::ThreadLanes, Mechanism::LockedLanes),
            };
            let error = request(absent).expect_err("not on this system");
            assert!(matches!(error, RequestError::NotAvailable(_)), "{error}");
            assert!(error.to_string().contains("not available"), "{error}");
            let chosen = choice();
            assert_ne!(chosen.mechanism, absent);
            // The choice stands from here on, but may be asked for again.
            assert_eq!(request(chosen.mechanism), Ok(chosen));
            if chosen.mechanism != other {
                assert_eq!(request(other), Err(RequestError::TooLate(chosen)));
                let sentence = RequestError::TooLate(chosen).to_string();
                assert!(sentence.contains("already uses"), "{sentence}");
            }
            assert_eq!(choice(), chosen);
            1
        },
    );
}

/// A request of what the process would have anyway, and of what the kernel refuses.
#[test]
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
fn sections_requested() {
    let test = "processes::sections_requested";
    child::run(test, Setting::AsIs, || {
        let chosen = request(Mechanism::Rseq).expect("sections");
        assert_eq!(chosen, Setting::AsIs.choose());
        1
    });
    let refused = Setting::Refused(EPERM);
    child::run(test, refused, || {
        let error = request(Mechanism::Rseq).expect_err("the kernel refuses");
        let RequestError::NotAvailable(offer) = error else {
            panic!("{error}");
        };
        assert_eq!(offer, refused.choose(), "the offer is what is chosen then");
        1
    });
}
