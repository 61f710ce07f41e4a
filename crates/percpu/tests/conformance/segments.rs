//! Segments and threads that are exceptions in their process.

use std::os::fd::{AsFd, OwnedFd};

use countersink_percpu::{Lane, Mechanism, STRIDE, Segment, SegmentError, choice};
use rustix::fs::MemfdFlags;

use crate::common::child::{self, Setting};
use crate::common::cpus;
use crate::suite::{self, Expected};

/// A file with room for a segment of so many CPUs behind one stride.
fn file(cpus: u32) -> OwnedFd {
    let fd = rustix::fs::memfd_create(c"segment", MemfdFlags::CLOEXEC).expect("a memfd");
    let bytes = STRIDE + Segment::bytes(cpus).expect("few CPUs");
    rustix::fs::ftruncate(&fd, bytes as u64).expect("room");
    fd
}

fn of_file(fd: &OwnedFd, cpus: u32, mechanism: Mechanism) -> Segment {
    let segment = Segment::of_fd(fd.as_fd(), STRIDE as u64, cpus, mechanism).expect("a mapping");
    assert_eq!((segment.cpus(), segment.mechanism()), (cpus, mechanism));
    segment
}

/// The suite on each allowed CPU; its lane is told by `lane`.
fn on_every_cpu(segment: &Segment, lane: impl Fn(u32) -> Lane) -> u64 {
    let run_on = |cpu: &u32| {
        let expected = Expected::Lane(lane(*cpu));
        cpus::on(*cpu, || suite::run(segment, expected))
    };
    cpus::allowed().iter().map(run_on).sum()
}

#[test]
fn a_file() {
    let cpus = choice().cpus;
    on_every_cpu(&of_file(&file(cpus), cpus, choice().mechanism), Lane::Cpu);
}

/// Whoever maps a file with sections on its lanes and cannot run any has the shared lane.
#[test]
fn a_file_for_sections_in_a_process_without() {
    let test = "segments::a_file_for_sections_in_a_process_without";
    child::run_chosen(test, Setting::Requested, || {
        let cpus = choice().cpus;
        let segment = of_file(&file(cpus), cpus, Mechanism::Rseq);
        on_every_cpu(&segment, |_| Lane::Shared)
    });
}

/// Whoever can run sections must not do so on lanes that others lock.
#[test]
fn a_file_for_locked_lanes_in_any_process() {
    let cpus = choice().cpus;
    on_every_cpu(
        &of_file(&file(cpus), cpus, Mechanism::LockedLanes),
        Lane::Cpu,
    );
    on_every_cpu(&Segment::private_locked().expect("memory"), Lane::Cpu);
}

/// CPUs beyond the lanes share one.
#[test]
fn a_file_with_fewer_lanes_than_cpus() {
    let lane = |cpu| match cpu {
        0 => Lane::Cpu(0),
        _ => Lane::Shared,
    };
    let fd = file(1);
    on_every_cpu(&of_file(&fd, 1, choice().mechanism), lane);
    on_every_cpu(&of_file(&fd, 1, Mechanism::LockedLanes), lane);
    if !cpus::allowed().iter().any(|cpu| *cpu > 0) {
        println!("only CPU 0 here: the lane of another was not tried");
    }
}

/// What describes no segment is refused and says why.
#[test]
fn what_is_not_a_segment() {
    const BEGIN: u64 = STRIDE as u64;
    let fd = file(2);
    let open = |offset, cpus| Segment::of_fd(fd.as_fd(), offset, cpus, Mechanism::LockedLanes);
    assert!(matches!(open(1, 1), Err(SegmentError::Offset(1))));
    assert!(matches!(open(4096, 1), Err(SegmentError::Offset(4096))));
    assert!(matches!(
        open(0, u32::MAX),
        Err(SegmentError::Cpus(u32::MAX))
    ));
    open(BEGIN, 2).expect("exactly as long as needed");
    for (offset, cpus) in [
        (2 * BEGIN, 2),
        (BEGIN, 4),
        (u64::MAX << 16, 1),
        (1 << 62, 1),
    ] {
        let error = open(offset, cpus).expect_err("too short");
        assert!(matches!(error, SegmentError::Memory(_)), "{error}");
    }
}

#[test]
fn lanes_and_words_that_there_are_not() {
    let segment = Segment::private().expect("memory");
    let words = countersink_percpu::WORDS;
    assert!(segment.slot::<u64>(words - 1).is_some() && segment.slot::<u64>(words).is_none());
    assert!(segment.pair::<u64>(words / 2 - 1).is_some());
    assert!(segment.pair::<u64>(words / 2).is_none() && segment.pair::<u64>(usize::MAX).is_none());
    assert!(
        segment
            .slots::<u64>(words, 0)
            .is_some_and(|none| none.is_empty())
    );
    assert!(segment.slots::<u64>(1, words).is_none());
    assert!(segment.slots::<u64>(usize::MAX, 2).is_none());
    let slots = segment.slots::<u64>(3, 2).expect("two words");
    assert!(slots.len() == 2 && slots.get(2).is_none());
    slots.get(1).expect("the second").add(7);
    let slot = segment.slot::<u64>(4).expect("the same word");
    assert_eq!(slot.sum(), 7);
    assert_eq!(slot.load(Lane::Cpu(segment.cpus())), None);
    assert_eq!(slot.load(Lane::Cpu(u32::MAX)), None);
}

/// A thread that nobody registered, in a process whose others are.
#[test]
#[cfg(target_arch = "x86_64")]
fn an_unregistered_thread_in_a_registered_process() {
    use crate::common::libc_rseq;
    if !libc_rseq::registers() {
        println!("the C library registers nobody here: nothing to take back");
        return;
    }
    let segment = Segment::private().expect("memory");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            libc_rseq::unregister_this_thread();
            suite::run(&segment, Expected::Lane(Lane::Shared))
        });
        assert!(thread.join().expect("the thread ends well") > 0);
    });
    on_every_cpu(&segment, Lane::Cpu);
}
