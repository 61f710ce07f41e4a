//! The settings in which the laws hold, and the mutants.

use countersink_interleaver::Explorer;

use super::memory::{A, B};
use super::task::Role;
use super::{Flaw, Index, Model};
use crate::{breaks, holds};

const fn user(name: u8, drops: bool) -> Role {
    Role::User { name, drops }
}

const READER: Role = Role::Reader { entry: 0 };

/// One CPU: there are no sections, so a thread is as good on any.
fn explorer(kills: u8) -> Explorer {
    Explorer::new(1).forbid_cycles().kills(kills)
}

#[track_caller]
fn registers(name: &str, kills: u8, model: &Model) {
    holds(name, &explorer(kills), model);
    let [alive, killed] = &model.twice;
    let (alive, killed) = (alive.get(), killed.get());
    println!("{name}: ends with one name twice: {alive} without a kill, {killed} with one");
}

const KEEPS_A: Role = user(A, false);
const KEEPS_B: Role = user(B, false);
const DROPS_A: Role = user(A, true);
const DROPS_B: Role = user(B, true);

#[test]
fn registrars() {
    let two = Model::new(&[KEEPS_A, KEEPS_A]);
    registers("two of one name", 2, &two);
    let mut other = Model::new(&[KEEPS_A, KEEPS_A, KEEPS_B]);
    registers("two of one name, one of another", 1, &other);
    other.rules.slots = 2;
    registers("the same, two slots", 1, &other);
    let three = Model::new(&[KEEPS_A, KEEPS_A, KEEPS_A]);
    registers("three of one name", 1, &three);
}

#[test]
fn droppers() {
    let again = Model::new(&[DROPS_A, DROPS_B, READER]);
    registers("dropped and used again, beside a reader", 1, &again);
    let joined = Model::new(&[DROPS_A, DROPS_A, KEEPS_B]);
    registers("joined, dropped and used again", 1, &joined);
    let mut pops = Model::new(&[DROPS_A, DROPS_B, KEEPS_A]);
    pops.free = 2;
    registers("from the free list and back", 0, &pops);
}

/// How often two entries of one name stay. It does no harm, as they are added up. Where nothing is
/// dropped, all who want the name have found the same slot empty, and one of them fills it. A slot
/// that becomes free in between leads them to different ones.
#[test]
fn one_entry_for_one_name() {
    let threads: [&[Role]; 5] = [
        &[KEEPS_A, KEEPS_A],
        &[KEEPS_A, KEEPS_A, KEEPS_B],
        &[KEEPS_A, KEEPS_A, KEEPS_A],
        &[KEEPS_A, KEEPS_A, DROPS_A],
        &[KEEPS_A, KEEPS_A, DROPS_B],
    ];
    for index in [
        Index::FillsSlotFound,
        Index::LeavesLaterSlot,
        Index::LeavesHigherEntry,
    ] {
        for threads in threads {
            let mut model = Model::new(threads);
            model.rules.index = index;
            let dropped = threads
                .iter()
                .any(|role| matches!(role, Role::User { drops: true, .. }));
            model.once = index == Index::FillsSlotFound && !dropped;
            registers(&format!("{index:?}, {threads:?}"), 0, &model);
        }
    }
    let twice = |name: &str, index, threads: &[Role]| {
        let mut model = Model::new(threads);
        (model.once, model.rules.index) = (true, index);
        breaks(name, &explorer(0), &model, "twice");
    };
    let drops = [KEEPS_A, KEEPS_A, DROPS_B];
    twice("a slot becomes free", Index::FillsSlotFound, &drops);
    let two = [KEEPS_A, KEEPS_A];
    twice(
        "the higher entry comes first",
        Index::LeavesHigherEntry,
        &two,
    );
}

/// A reset from outside that is not counted as a user may come to an entry that has another name by
/// then, and take that one's counts.
#[test]
fn resets_from_outside_join() {
    let reset = |joins| {
        let resetter = Role::Resetter {
            name: A,
            entry: 0,
            joins,
        };
        Model::new(&[DROPS_A, KEEPS_B, resetter])
    };
    registers("a reset that joins", 1, &reset(true));
    let name = "a reset that does not join";
    breaks(name, &explorer(0), &reset(false), "counts");
}

fn mutant(flaw: Flaw, threads: &[Role], free: u8, law: &str) {
    let mut model = Model::new(threads);
    (model.free, model.rules.flaw) = (free, Some(flaw));
    breaks(&format!("{flaw:?}"), &explorer(0), &model, law);
}

#[test]
fn ready_before_it_is_written() {
    mutant(Flaw::ReadyFirst, &[KEEPS_A, READER], 0, "read: 0 under");
    // The entry that is used again still has the name before.
    let threads = [DROPS_A, KEEPS_B, KEEPS_A];
    mutant(Flaw::ReadyFirst, &threads, 0, "handle");
}

#[test]
fn free_list_without_a_tag() {
    let threads = [DROPS_A, KEEPS_B, KEEPS_A];
    mutant(Flaw::NoTag, &threads, 2, "free list");
}

#[test]
fn used_again_in_the_same_generation() {
    let threads = [DROPS_A, KEEPS_B, READER];
    mutant(Flaw::SameGeneration, &threads, 0, "read: 10 under name 1");
    mutant(Flaw::ReadsLifeOnce, &threads, 0, "read: 10 under name 1");
}

#[test]
fn joined_whatever_the_state() {
    let threads = [DROPS_A, KEEPS_A];
    mutant(Flaw::JoinsBlindly, &threads, 0, "handle");
}

#[test]
fn counts_kept_for_the_next_name() {
    let threads = [DROPS_A, KEEPS_B];
    mutant(Flaw::KeepsCounts, &threads, 0, "counts");
}
