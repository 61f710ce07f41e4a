//! What must hold, and the mutants.

use countersink_interleaver::Explorer;

use super::*;
use crate::{CPUS, breaks, holds};

fn op(n: i8, most: i8) -> Op {
    Op {
        n,
        most,
        limit: None,
    }
}

fn limited(n: i8, most: i8, limit: i8) -> Op {
    Op {
        n,
        most,
        limit: Some(limit),
    }
}

fn adds(ops: &[Op]) -> Role {
    Role::Adds {
        ops: ops.to_vec(),
        locked: false,
    }
}

fn shared(ops: &[Op]) -> Role {
    Role::Adds {
        ops: ops.to_vec(),
        locked: true,
    }
}

fn explorer(kills: u8) -> Explorer {
    Explorer::new(CPUS).kills(kills)
}

/// With and without shifts.
fn run(name: &str, kills: u8, model: &Model) {
    for shifts in [false, true] {
        let mut model = model.clone();
        model.rules.shifts = shifts;
        let shifts = if shifts { ", shifts" } else { "" };
        holds(
            &format!("bounded, {name}{shifts}"),
            &explorer(kills),
            &model,
        );
    }
}

#[test]
fn the_range_holds_whoever_is_killed() {
    for most in [0, 1, 2] {
        let add = |n| op(n, most);
        run(
            &format!("up, {most}"),
            1,
            &Model::new(most, vec![adds(&[add(1), add(2)]), adds(&[add(3)])]),
        );
        run(
            &format!("both ways, {most}"),
            1,
            &Model::new(
                most,
                vec![adds(&[add(2), add(-3)]), adds(&[add(-1), add(1)])],
            ),
        );
        run(
            &format!("shared, {most}"),
            1,
            &Model::new(
                most,
                vec![adds(&[add(2), add(-1)]), shared(&[add(1), add(-2)])],
            ),
        );
    }
    let three = vec![adds(&[op(2, 1)]), adds(&[op(-2, 1)]), adds(&[op(1, 1)])];
    run("three", 1, &Model::new(1, three));
}

#[test]
fn batches_may_differ_from_call_to_call() {
    let mixed = vec![adds(&[op(2, 3), op(1, 0)]), adds(&[op(3, 3), op(-2, 1)])];
    run("mixed batches", 1, &Model::new(3, mixed));
}

#[test]
fn handlers_add_in_the_middle() {
    let mut model = Model::new(1, vec![adds(&[op(2, 1), op(-1, 1)]), adds(&[op(1, 1)])]);
    model.handler = Some(op(1, 1));
    let explorer = Explorer::new(CPUS).signals(1).kills(1);
    holds("bounded, handler", &explorer, &model);
}

/// With subtractions and limited additions of one limit, the sum never passes it.
#[test]
fn the_limit_is_never_passed() {
    for (most, limit) in [(0, 2), (1, 5), (1, 6)] {
        let add = |n| limited(n, most, limit);
        for roles in [
            vec![adds(&[add(2), add(1)]), adds(&[add(2)])],
            vec![adds(&[add(3), op(-1, most)]), adds(&[add(1), add(1)])],
            vec![adds(&[add(2), op(-3, most)]), shared(&[add(2)])],
            vec![adds(&[add(1)]), adds(&[add(2)]), adds(&[add(1)])],
        ] {
            let mut model = Model::new(most, roles);
            model.limit = Some(limit);
            model.possible = true;
            run(&format!("limited to {limit}, {most}"), 1, &model);
        }
    }
}

/// Beside plain additions, a limited one was possible at one moment.
#[test]
fn limited_additions_were_possible() {
    for (most, limit) in [(0, 2), (1, 6)] {
        for plain in [2, -2] {
            let roles = vec![
                adds(&[limited(1, most, limit)]),
                adds(&[op(plain, most), op(plain, most)]),
            ];
            let mut model = Model::new(most, roles);
            model.possible = true;
            run(
                &format!("limited to {limit} beside {plain}, {most}"),
                1,
                &model,
            );
        }
    }
}

#[test]
fn one_of_two_values_is_set() {
    run(
        "two setters",
        1,
        &Model::new(1, vec![Role::Sets(3), Role::Sets(-2)]),
    );
    run(
        "setter and adders",
        1,
        &Model::new(
            1,
            vec![
                Role::Sets(3),
                adds(&[op(2, 1), op(-1, 1)]),
                shared(&[op(1, 1)]),
            ],
        ),
    );
}

#[test]
fn sums_are_ones_that_are_allowed() {
    for most in [0, 1] {
        let roles = vec![adds(&[op(1, most), op(-1, most), op(1, most)]), Role::Sums];
        run(&format!("sum, {most}"), 1, &Model::new(most, roles));
    }
}

#[test]
fn sync_repairs_and_never_breaks() {
    for most in [0, 1] {
        let mut model = Model::new(most, vec![Role::Syncs, adds(&[op(2, most), op(-2, most)])]);
        model.left = 2;
        run(&format!("sync, {most}"), 1, &model);
        let roles = vec![Role::Syncs, adds(&[op(2, most)]), adds(&[op(-2, most)])];
        run(
            &format!("sync beside two, {most}"),
            1,
            &Model { roles, ..model },
        );
    }
}

fn mutant(flaw: Flaw, mut model: Model, kills: u8, law: &str) {
    model.rules.flaw = Some(flaw);
    breaks(&format!("bounded, {flaw:?}"), &explorer(kills), &model, law);
}

#[test]
fn a_word_that_moves_behind_the_lane_is_overtaken() {
    mutant(
        Flaw::MovesAfter,
        Model::new(1, vec![adds(&[op(2, 1)])]),
        0,
        "range:",
    );
}

#[test]
fn a_word_that_moves_before_the_lane_overtakes() {
    mutant(
        Flaw::BehindFirst,
        Model::new(1, vec![adds(&[op(2, 1)])]),
        0,
        "range:",
    );
}

#[test]
fn two_stores_are_seen_apart() {
    mutant(
        Flaw::TwoStores,
        Model::new(1, vec![adds(&[op(2, 1)])]),
        0,
        "lane:",
    );
}

#[test]
fn the_value_alone_does_not_tell() {
    let model = Model::new(1, vec![adds(&[op(2, 1), op(-3, 1)])]);
    mutant(Flaw::IgnoresPublished, model, 0, "lane:");
}

#[test]
fn a_limit_is_looked_at_inside_the_section() {
    // The sum is at the limit when the limited addition looks; then others go beyond, and make room in its lane.
    let roles = vec![adds(&[limited(1, 1, 3)]), adds(&[op(2, 1), op(-1, 1)])];
    let mut model = Model::new(1, roles);
    model.full = true;
    model.possible = true;
    run("limited beside a plain one, full", 1, &model);
    mutant(Flaw::GuardOutside, model, 0, "impossible:");
}

#[test]
fn sync_asks_first() {
    let mut model = Model::new(0, vec![Role::Syncs, adds(&[op(2, 0)])]);
    model.left = 2;
    mutant(Flaw::SyncsAnyway, model.clone(), 0, "range:");
    // The two words may be what they were when somebody was in the middle, with another in the middle.
    let roles = vec![Role::Syncs, adds(&[op(2, 0), op(-2, 0)])];
    let model = Model { roles, ..model };
    mutant(Flaw::SyncAsksBehind, model.clone(), 0, "range:");
    // And the lanes are not seen at one moment.
    mutant(Flaw::SyncAsksBeforeScan, model, 0, "range:");
}

#[test]
fn a_value_is_set_by_comparison() {
    mutant(
        Flaw::SetsAnyway,
        Model::new(1, vec![Role::Sets(3), Role::Sets(-2)]),
        0,
        "lost:",
    );
}

#[test]
fn sums_as_seen_are_none_that_there_were() {
    let roles = vec![adds(&[op(1, 0), op(-1, 0)]), Role::Sums];
    mutant(Flaw::SumAsSeen, Model::new(0, roles), 0, "sum: -1");
}
