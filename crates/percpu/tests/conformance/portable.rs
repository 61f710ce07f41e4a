//! Lanes by thread.

#[cfg(target_os = "linux")]
use countersink_percpu::Lane;
use countersink_percpu::{Mechanism, Segment, choice};

use crate::suite::{self, Expected};

#[test]
fn the_choice() {
    let chosen = choice();
    assert_eq!(chosen.mechanism, Mechanism::ThreadLanes);
    assert_eq!(chosen.registrar(), None);
    let sentence = chosen.to_string();
    let begin = "locked operations on per-thread lanes, because ";
    assert!(sentence.starts_with(begin), "{sentence}");
}

#[test]
fn operations() {
    let segment = Segment::private().expect("memory");
    assert_eq!(segment.mechanism(), Mechanism::ThreadLanes);
    suite::run(&segment, Expected::AnyCpuLane);
}

/// As many new threads as lanes: each lane gets one.
///
/// Other tests deal out lanes meanwhile, so this one runs in a process of its own where it can.
#[cfg(target_os = "linux")]
fn spread() -> u64 {
    let segment = Segment::private().expect("memory");
    for round in 1..=3 {
        for _ in 0..segment.cpus() {
            std::thread::scope(|scope| {
                scope.spawn(|| segment.slot::<u64>(0).expect("a word").inc());
            });
        }
        for cpu in 0..segment.cpus() {
            let held = segment
                .slot::<u64>(0)
                .and_then(|slot| slot.load(Lane::Cpu(cpu)));
            assert_eq!(held, Some(round), "lane {cpu}");
        }
    }
    segment.slot::<u64>(0).map_or(0, |slot| slot.sum())
}

#[test]
#[cfg(target_os = "linux")]
fn threads_spread_over_the_lanes() {
    use crate::common::child::{Setting, run_chosen};
    run_chosen(
        "portable::threads_spread_over_the_lanes",
        Setting::AsIs,
        spread,
    );
}

#[test]
fn memory_of_others_is_refused() {
    assert!(Segment::shared().is_err());
}
