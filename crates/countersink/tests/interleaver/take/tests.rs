//! The settings in which the laws hold, and the mutants.

use countersink_interleaver::Explorer;

use super::{Flaw, Model};
use crate::{CPUS, breaks, holds};

fn explorer(kills: u8) -> Explorer {
    Explorer::new(CPUS).forbid_cycles().kills(kills)
}

#[test]
fn takes_of_two_processes() {
    let model = Model::new(&[&[1], &[2]], 2, 0);
    holds("takes", &explorer(2), &model);
    let model = Model::new(&[&[1, 2]], 2, 0);
    holds("takes, two adds of one thread", &explorer(2), &model);
    let model = Model::new(&[&[1, 2]], 3, 0);
    holds("takes, three takers", &explorer(1), &model);
}

#[test]
fn reads_beside_takes() {
    let mut model = Model::new(&[&[1], &[2]], 1, 1);
    holds("reads of pairs", &explorer(1), &model);
    (model.pairs, model.must_agree) = (false, false);
    holds("reads word by word", &explorer(1), &model);
    let model = Model::new(&[&[1, 2]], 2, 1);
    holds("reads beside two takers", &explorer(1), &model);
}

fn mutant(model: Model, flaw: Flaw, law: &str) {
    let model = Model {
        flaw: Some(flaw),
        ..model
    };
    breaks(&format!("take, {flaw:?}"), &explorer(0), &model, law);
}

#[test]
fn lanes_before_bias() {
    let model = Model::new(&[&[1]], 2, 0);
    mutant(model, Flaw::LanesBeforeBias, "take: below zero");
}

#[test]
fn no_second_look_at_the_bias() {
    let model = Model::new(&[&[1, 2]], 1, 1);
    mutant(
        model,
        Flaw::NoSecondLook,
        "read: [3, 9], above any that there was",
    );
}

#[test]
fn lanes_zeroed() {
    let model = Model::new(&[&[1, 2]], 1, 0);
    mutant(model, Flaw::ZeroesLanes, "lost");
}

#[test]
fn pair_exchanged_word_by_word() {
    let model = Model::new(&[&[1], &[2]], 2, 0);
    mutant(model, Flaw::TwoExchanges, "take: disagrees");
}

/// `pread` copies word by word, so a reader of another process may see one word of a sample.
#[test]
fn words_read_one_by_one_disagree() {
    let mut model = Model::new(&[&[1]], 0, 1);
    holds("pairs at once", &explorer(0), &model);
    model.pairs = false;
    let law = "read: [0, 3], which disagree";
    breaks("pairs word by word", &explorer(0), &model, law);
}

/// What a reader gets lies between two values that there were. With adds of more than 1 it need not
/// be one of them.
#[test]
fn a_value_read_need_not_have_been() {
    let mut model = Model::new(&[&[1], &[2]], 0, 1);
    model.must_have_been = true;
    let law = "read: [2, 6], none that there was";
    breaks("a value that there was", &explorer(0), &model, law);
    model.adders = vec![vec![1], vec![1]];
    holds("a value that there was, adds of 1", &explorer(0), &model);
}
