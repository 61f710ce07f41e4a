//! Each known mistake, made on purpose: the explorer must find it, by the law that it breaks.

use countersink_interleaver::Kind;
use countersink_percpu::spec::Op;

use crate::model::{Model, Role};
use crate::operation::Flaw;
use crate::{bits, guarded, holds, sweep};

/// Explores with the flaw, which must be found, and without it, which must hold.
#[track_caller]
fn found(mut model: Model, flaw: Flaw, law: &str) {
    model.flaw = None;
    holds(&model, "without the flaw", 1, 0);
    model.flaw = Some(flaw);
    breaks(&model, &format!("{flaw:?}"), law);
}

#[track_caller]
fn breaks(model: &Model, name: &str, law: &str) {
    let Err(failure) = model.explore(name, 1, 0) else {
        panic!("{name} was not found");
    };
    assert_eq!(failure.kind, Kind::Law, "{name}: {failure}");
    assert!(failure.message.starts_with(law), "{name}: {failure}");
}

/// Two registered threads, one operation each.
fn two(one: Op, other: Op) -> Model {
    let threads = [one, other].map(|op| Role::Registered(vec![op]));
    Model::new(2, threads.to_vec())
}

fn adds() -> Model {
    two(Op::Add(1), Op::Add(10))
}

/// One registered thread and one that is not.
fn one_unregistered() -> Model {
    let threads = [
        Role::Registered(vec![Op::Add(1)]),
        Role::Unregistered(vec![Op::Add(10)]),
        Role::Unregistered(vec![Op::Add(100)]),
    ];
    Model::new(2, threads.to_vec())
}

#[test]
fn words_loaded_before_the_section() {
    found(adds(), Flaw::LoadsWordsBefore, "law 1");
}

#[test]
fn cpu_loaded_before_the_section() {
    found(adds(), Flaw::LoadsCpuBefore, "law 1");
}

#[test]
fn lane_kept_across_a_restart() {
    found(adds(), Flaw::RestartKeepsLane, "law 1");
}

#[test]
fn pair_committed_by_two_stores() {
    let pairs = two(Op::AddPair([1, 2]), Op::AddPair([10, 20]));
    found(pairs, Flaw::SplitsCommit, "law 1");
}

#[test]
fn commit_not_the_last_instruction() {
    found(adds(), Flaw::StepAfterCommit, "law 1");
}

#[test]
fn abort_told_as_a_mismatch() {
    let swap = |old, new| Op::CompareExchange { old, new };
    let mut model = two(swap(5, 6), swap(5, 7));
    model.start = [5; 2];
    found(model, Flaw::AbortIsMismatch, "law 1");
}

#[test]
fn unlocked_add_on_the_shared_lane() {
    found(one_unregistered(), Flaw::UnlockedOnShared, "law 1");
    // Registered threads come there too, by aborts.
    let mut model = adds();
    model.max_aborts = 1;
    found(model, Flaw::UnlockedOnShared, "law 1");
}

#[test]
fn locked_add_on_a_cpu_lane() {
    found(one_unregistered(), Flaw::LockedOnCpuLane, "law 1");
}

#[test]
fn unbounded_restarts() {
    let mut model = adds();
    model.flaw = Some(Flaw::RestartsForever);
    let failure = model.explore("RestartsForever", 0, 0).unwrap_err();
    assert_eq!(failure.kind, Kind::Cycle, "{failure}");
}

/// Law 2 is one of words that only go up: a gauge in one signed word is read as what it never was.
#[test]
fn sweep_of_a_word_that_goes_down() {
    let threads = [
        Role::Registered(vec![Op::Add(1), Op::Add(bits(-1))]),
        Role::Sweeper(sweep::SUM),
    ];
    breaks(&Model::new(2, threads.to_vec()), "signed word", "sweep");
}

/// Downs and then ups bound a gauge from above only.
#[test]
fn gauge_swept_once() {
    let (up, down) = (Op::AddPair([1, 0]), Op::AddPair([0, 1]));
    let threads = [
        Role::Registered(vec![up, down]),
        Role::Sweeper(sweep::GAUGE_SHORT),
    ];
    breaks(
        &Model::new(2, threads.to_vec()),
        "gauge swept once",
        "gauge",
    );
}

#[test]
fn guard_loaded_before_the_section() {
    found(guarded(3), Flaw::LoadsGuardBefore, "guard: was raised");
}

#[test]
fn guard_tested_before_the_add_on_the_shared_lane() {
    found(guarded(3), Flaw::SharedTestsFirst, "guard: the shared lane");
}

#[test]
fn no_membarrier() {
    breaks(&guarded(0), "no membarrier", "guard: lane");
}

#[test]
fn membarrier_on_all_cpus_but_one() {
    breaks(&guarded(2), "one CPU not fenced", "guard: lane 2");
}

/// Why such a lock may never live in memory that processes share.
#[test]
fn membarrier_of_another_process() {
    let mut model = guarded(3);
    model.one_process = false;
    breaks(&model, "another process", "guard: lane");
}
