//! The settings in which the laws hold, and the mutants.

use countersink_interleaver::Kind;

use super::{Flaw, Model, Takes, Way};
use crate::explore;

/// The lanes as they are in each state.
#[test]
fn records_beside_resets() {
    for way in [
        Way::Lexicographic,
        Way::LexicographicRecheck,
        Way::InSection,
    ] {
        for quick in [false, true] {
            let name = format!("longest, {way:?}, quick check {quick}");
            let model = |values: &[u8], resetters| Model {
                way,
                quick,
                ..Model::new(values, resetters, 0)
            };
            model(&[5, 9], 1).holds(&name, 1);
            if way != Way::LexicographicRecheck {
                model(&[5, 9], 2).holds(&name, 0);
            }
            model(&[5], 2).holds(&name, 2);
        }
    }
}

#[test]
fn reads_beside_records() {
    for pairs in [true, false] {
        let model = Model {
            pairs,
            ..Model::new(&[5, 9], 1, 1)
        };
        model.holds(&format!("longest, read in pairs {pairs}"), 0);
    }
}

/// A recorder that was stopped for long finds a sample of a later generation, and replaces it.
#[test]
fn an_old_generation_replaces_a_new_one() {
    let mut model = Model::new(&[5, 9], 1, 0);
    model.way = Way::Equal;
    model.breaks("longest, Equal", "missing: 9 is recorded");
}

#[test]
fn no_look_at_the_tick() {
    let model = Model::new(&[5], 1, 0).with(Flaw::NoTick);
    model.breaks("longest, NoTick", "stale");
}

#[test]
fn quick_check_of_the_value_first() {
    let mut model = Model::new(&[5, 9, 4], 1, 0).with(Flaw::QuickValueFirst);
    model.quick = true;
    model.breaks("longest, QuickValueFirst", "missing");
}

/// Another reset comes in between, and the generation begins before that one's tick.
#[test]
fn tick_before_generation() {
    let model = Model::new(&[5], 2, 0).with(Flaw::TickBeforeGeneration);
    model.breaks("longest, TickBeforeGeneration", "stale");
}

/// By the law that it breaks, and by what that law is there for.
#[test]
fn lanes_zeroed() {
    let mut model = Model::new(&[5], 1, 0).with(Flaw::ZeroesLanes);
    model.breaks("longest, ZeroesLanes", "ownership");
    model.owned = false;
    model.breaks("longest, ZeroesLanes", "missing");
}

#[test]
fn reader_loads_the_value_first() {
    let mut model = Model::new(&[9, 5], 1, 1).with(Flaw::ReaderValueFirst);
    model.pairs = false;
    model.breaks("longest, ReaderValueFirst", "reader: stale");
}

#[test]
fn reader_looks_at_the_generation_once() {
    let model = Model::new(&[5, 9], 1, 1).with(Flaw::NoSecondLook);
    model.breaks("longest, NoSecondLook", "reader: missing");
}

/// Exchanges that mismatch again and again: where threads are moved to another CPU at each try, and
/// where all sections are aborted and each try begins with the CPU's lane. One section that loads,
/// compares and stores ends in any case.
#[test]
fn retries() {
    let cycles = |name: &str, model: &Model| {
        let explorer = model.explorer(0).forbid_cycles();
        explore(name, &explorer, model).err().map(|e| e.kind)
    };
    let mut model = Model::new(&[5], 0, 0);
    model.start = [(1, 1), (1, 2), (1, 3)];
    assert_eq!(cycles("longest, moved", &model), Some(Kind::Cycle));
    model.stepped = true;
    assert_eq!(cycles("longest, aborted", &model), None);
    model.reloads = true;
    assert_eq!(cycles("longest, reloads", &model), Some(Kind::Cycle));

    let mut model = Model::new(&[5, 9], 1, 0);
    (model.way, model.quick) = (Way::InSection, true);
    assert_eq!(cycles("longest, in one section", &model), None);
}

/// What a reset reports as taken. It has to look at the lanes before it makes the new generation,
/// whose samples replace those that it wants. What is recorded between its look and the new
/// generation may then be in neither.
#[test]
fn extremes_taken() {
    let mut model = Model::new(&[5, 9], 1, 0);
    model.takes = Takes::BeforeReset;
    model.holds("longest, taken before the reset", 1);
    model.exact = true;
    model.breaks("longest, all taken", "taken: 5 is recorded");
    (model.takes, model.exact) = (Takes::AfterReset, false);
    model.breaks("longest, taken after the reset", "taken: ");
}
