//! The explorer on toy protocols whose behaviour is known: what it must find, and what it must not.

mod placement;
mod toy;

use countersink_interleaver::{Explorer, Failure, Kind, Report, World};

use toy::Ins::{self, *};
use toy::{Frame, Toy, Words};

const PLAIN: &[Ins] = &[LoadLane, StoreLane];
const SECTION: &[Ins] = &[Section, LoadLane, StoreLane];

fn all_counted(world: &World<Words, Frame>) -> Result<(), String> {
    match world.memory.iter().sum::<u8>() as usize {
        n if n == world.threads.len() => Ok(()),
        n => Err(format!("{n} counted, of {}", world.threads.len())),
    }
}

fn counting(threads: &[&'static [Ins]]) -> Toy {
    Toy {
        last: all_counted,
        ..Toy::new(threads)
    }
}

fn holds(explorer: Explorer, toy: &Toy) -> Report {
    explorer.explore(toy).unwrap_or_else(|e| panic!("{e}"))
}

fn fails(explorer: Explorer, toy: &Toy, kind: Kind) -> Failure {
    let failure = explorer.explore(toy).unwrap_err();
    assert_eq!(failure.kind, kind, "{failure}");
    failure
}

#[test]
fn plain_increments_lose_updates() {
    let failure = fails(Explorer::new(1), &counting(&[PLAIN, PLAIN]), Kind::Law);
    assert_eq!(failure.message, "1 counted, of 2");
    assert_eq!(failure.trace.len(), 4, "not a shortest trace: {failure}");
    assert!(
        failure.trace[0].starts_with("thread 0 on CPU 0: "),
        "{failure}"
    );
    assert!(
        failure.trace[2].ends_with("StoreLane  => [1, 0, 0]"),
        "{failure}"
    );
}

#[test]
fn section_increments_lose_none() {
    holds(
        Explorer::new(2),
        &counting(&[SECTION, SECTION, SECTION, SECTION]),
    );
}

/// The number of states of one increment on one CPU can be counted by hand: start, in the section,
/// loaded, finished. Killed at the start, or at the abort point, which is the same.
#[test]
fn states_counted_by_hand() {
    let report = holds(Explorer::new(1).kills(1), &Toy::new(&[SECTION]));
    let by_hand = Report {
        states: 5,
        // Three steps, two aborts, a kill from each of three live states.
        transitions: 8,
        finals: 2,
        stuck_after_kill: 0,
    };
    assert_eq!(report, by_hand);
}

#[test]
fn migration_alone_breaks_plain_increments() {
    let toy = counting(&[PLAIN, PLAIN]);
    holds(Explorer::new(2).pin(0, 0).pin(1, 1), &toy);
    fails(Explorer::new(2).pin(0, 0), &toy, Kind::Law);
}

/// A section is not protected from what runs on another CPU.
#[test]
fn sections_do_not_exclude_other_cpus() {
    const ON_ONE_WORD: &[Ins] = &[Section, Load(0), StoreNext(0)];
    let toy = counting(&[ON_ONE_WORD, ON_ONE_WORD]);
    holds(Explorer::new(1), &toy);
    fails(Explorer::new(2), &toy, Kind::Law);
}

#[test]
fn handlers_interrupt_plain_increments_and_abort_sections() {
    let with_handler = |code, handler| Toy {
        handler: Some(handler),
        last: |world| {
            let delivered = 2 - world.signals_left;
            match world.memory[0] {
                n if n == 1 + delivered => Ok(()),
                n => Err(format!("{n} counted, with {delivered} signals")),
            }
        },
        ..Toy::new(&[code])
    };
    // No preemption: it is the signal that aborts.
    let explorer = || Explorer::new(1).signals(2).preempt(false);
    holds(explorer(), &with_handler(SECTION, SECTION));
    fails(explorer(), &with_handler(PLAIN, SECTION), Kind::Law);
    // The second signal interrupts the first one's handler.
    fails(explorer(), &with_handler(SECTION, PLAIN), Kind::Law);
}

#[test]
fn without_preemption_a_section_runs_through() {
    let toy = Toy {
        each: |world| match world.threads[0].section_on {
            None if world.threads[0].frames[0].pc == 0 && world.memory[1] == 1 => {
                Err("the other thread ran first".into())
            }
            _ => Ok(()),
        },
        ..Toy::new(&[SECTION, &[Set(1, 1)]])
    };
    fails(Explorer::new(1), &toy, Kind::Law);
    let once = Toy::new(&[SECTION]);
    // The same states, but no abort leads back.
    holds(Explorer::new(1).preempt(false).forbid_cycles(), &once);
    fails(Explorer::new(1).forbid_cycles(), &once, Kind::Cycle);
}

#[test]
fn a_kill_between_two_stores_is_explored() {
    const BOTH: &[Ins] = &[Set(0, 1), Set(1, 1)];
    let toy = Toy {
        last: |world| match world.memory {
            [1, 0, _] => Err("half done".into()),
            _ => Ok(()),
        },
        ..Toy::new(&[BOTH])
    };
    holds(Explorer::new(1), &toy);
    let failure = fails(Explorer::new(1).kills(1), &toy, Kind::Law);
    assert!(failure.trace[1].contains("is killed"), "{failure}");
}

#[test]
fn deadlock_is_found() {
    const AB: &[Ins] = &[Lock(0), Lock(1), Set(1, 0), Set(0, 0)];
    const BA: &[Ins] = &[Lock(1), Lock(0), Set(0, 0), Set(1, 0)];
    holds(Explorer::new(2), &Toy::new(&[AB, AB]));
    let failure = fails(Explorer::new(2), &Toy::new(&[AB, BA]), Kind::Deadlock);
    assert_eq!(failure.trace.len(), 2, "{failure}");
}

#[test]
fn waiting_for_the_dead_is_counted_apart() {
    const A: &[Ins] = &[Lock(0), Set(0, 0)];
    let toy = Toy::new(&[A, A]);
    assert_eq!(holds(Explorer::new(2), &toy).stuck_after_kill, 0);
    assert_ne!(holds(Explorer::new(2).kills(1), &toy).stuck_after_kill, 0);
}

#[test]
fn spinning_is_a_cycle() {
    let toy = Toy::new(&[&[SpinUntilSet(0)], &[Set(0, 1)]]);
    holds(Explorer::new(2), &toy);
    let failure = fails(Explorer::new(2).forbid_cycles(), &toy, Kind::Cycle);
    assert!(
        failure.trace.last().unwrap().contains("SpinUntilSet"),
        "{failure}"
    );
}

/// Thread 1 raises word 1, fences, and sets word 0. No section that loaded word 1 before it was
/// raised may then still be on its way to its commit.
#[test]
fn fences_abort_sections_of_their_process_on_their_cpu() {
    const READER: &[Ins] = &[Section, Load(1), StoreNext(2)];
    let toy = |writer, one_process| Toy {
        one_process,
        each: |world| {
            let reader = &world.threads[0].frames[0];
            let before_commit = reader.pc == 2 && reader.section.is_some();
            match before_commit && reader.register == 0 && world.memory[0] == 1 {
                true => Err("a section with an old view outlived the fences".into()),
                false => Ok(()),
            }
        },
        ..Toy::new(&[READER, writer])
    };
    const FENCED: &[Ins] = &[Set(1, 1), Fence(0), Fence(1), Set(0, 1)];
    const ONE_CPU: &[Ins] = &[Set(1, 1), Fence(0), Set(0, 1)];
    const NONE: &[Ins] = &[Set(1, 1), Set(0, 1)];
    let explorer = || Explorer::new(2);
    holds(explorer(), &toy(FENCED, true));
    let other_process = fails(explorer(), &toy(FENCED, false), Kind::Law);
    assert_eq!(other_process.trace.len(), 6, "{other_process}");
    fails(explorer(), &toy(ONE_CPU, true), Kind::Law);
    fails(explorer(), &toy(NONE, true), Kind::Law);
}

#[test]
fn too_many_states_are_an_error() {
    let toy = counting(&[SECTION, SECTION]);
    let states = holds(Explorer::new(2), &toy).states;
    holds(Explorer::new(2).state_cap(states), &toy);
    fails(Explorer::new(2).state_cap(states - 1), &toy, Kind::StateCap);
}

#[test]
fn impossible_settings_are_an_error() {
    let toy = Toy::new(&[PLAIN]);
    fails(Explorer::new(0), &toy, Kind::Settings);
    fails(Explorer::new(1).pin(0, 1), &toy, Kind::Settings);
    fails(Explorer::new(1).pin(1, 0), &toy, Kind::Settings);
}
