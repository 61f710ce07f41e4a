//! Batch and tree counters from words.

use crate::reader::testing::{BIAS, Builder, CPU, SHARED, Spec, counter, named};
use crate::reader::{Bounded, Per, Value, growth};

const fn word(value: i64) -> u64 {
    value.cast_unsigned()
}

/// So many batch counters.
fn batches(name: &str, at: u32, count: u32) -> Spec {
    Spec {
        kind: 5,
        words: 2 + 2 * count,
        grouping: count,
        ..counter(name, at)
    }
}

fn tree(name: &str, at: u32) -> Spec {
    Spec {
        kind: 6,
        words: 20,
        ..counter(name, at)
    }
}

fn bounded(sum: i64, estimate: i64, bound: Option<u64>) -> Bounded {
    Bounded {
        sum,
        estimate,
        bound,
    }
}

#[test]
fn sums_are_without_the_bias_lane_which_has_the_estimate() {
    let mut builder = Builder::new();
    builder.entry(&batches("a", 0, 1));
    builder
        .words(SHARED, 0, &[word(-3), word(0)])
        .words(CPU, 0, &[10, 8])
        .words(CPU + 1, 0, &[5, 5])
        // 13 are published; a carry of 4 is under way. 93 may be unpublished.
        .words(BIAS, 0, &[17, 13, 93, 0]);
    let snapshot = builder.snapshot();
    let metric = named(&snapshot, "a");
    assert_eq!(metric.value, Value::Batch(bounded(12, 15, Some(95))));
    assert!(!metric.torn);
    let lanes = [
        (Per::Cpu(0), Value::Batch(bounded(10, 8, None))),
        (Per::Cpu(1), Value::Batch(bounded(5, 5, None))),
        (Per::Shared, Value::Batch(bounded(-3, 0, None))),
    ];
    assert_eq!(metric.lanes, lanes);
}

#[test]
fn many_are_told_apart_by_their_index() {
    let mut builder = Builder::new();
    builder.entry(&batches("a", 2, 3));
    builder.words(CPU, 2, &[1, 0, 20, 20, 300, 300]).words(
        BIAS,
        2,
        &[0, 0, 20, 20, 300, 300, 31, 0],
    );
    let snapshot = builder.snapshot();
    let found: Vec<_> = snapshot
        .metrics
        .iter()
        .map(|metric| (metric.labels[0].1.as_str(), metric.value.clone()))
        .collect();
    let expected = [(1, 0), (20, 20), (300, 300)]
        .map(|(sum, estimate)| Value::Batch(bounded(sum, estimate, Some(31))));
    let expected: Vec<_> = ["0", "1", "2"].into_iter().zip(expected).collect();
    assert_eq!(found, expected);
    assert_eq!(snapshot.metrics[0].labels[0].0, "index");
}

#[test]
fn trees_have_their_slack_behind_their_groups() {
    let mut builder = Builder::new();
    builder.entry(&tree("a", 8));
    let mut bias = [0; 20];
    (bias[0], bias[1], bias[18]) = (7, 7, 93);
    builder
        .words(CPU, 8, &[7, 7, 1000, 1000])
        .words(BIAS, 8, &bias);
    let snapshot = builder.snapshot();
    let value = &named(&snapshot, "a").value;
    assert_eq!(*value, Value::Tree(bounded(7, 7, Some(93))));
}

#[test]
fn a_sum_that_cannot_have_been_is_the_next_that_can() {
    let mut builder = Builder::new();
    builder.entry(&batches("a", 0, 1));
    builder
        .words(CPU, 0, &[500, 0])
        .words(BIAS, 0, &[10, 10, 3, 0]);
    let snapshot = builder.snapshot();
    let value = &named(&snapshot, "a").value;
    assert_eq!(*value, Value::Batch(bounded(13, 10, Some(3))));
}

#[test]
fn without_batches_there_is_no_bound() {
    let mut builder = Builder::new();
    builder.entry(&batches("a", 0, 1));
    builder
        .words(CPU, 0, &[500, 0])
        .words(BIAS, 0, &[0, 0, word(i64::MAX), 0]);
    let snapshot = builder.snapshot();
    let value = &named(&snapshot, "a").value;
    assert_eq!(*value, Value::Batch(bounded(500, 0, None)));
}

#[test]
fn impossible_ones_are_left_out() {
    for (spec, why) in [
        (
            batches("a", 0, 0),
            "it is no possible number of batch counters",
        ),
        (
            Spec {
                grouping: 4096,
                ..batches("a", 0, 1)
            },
            "it is no possible number of batch counters",
        ),
        (
            Spec {
                grouping: 2,
                ..batches("a", 0, 1)
            },
            "it has 4 words instead of 6",
        ),
        (
            Spec {
                grouping: 1,
                ..tree("a", 0)
            },
            "it is a tree counter with a grouping power",
        ),
    ] {
        let mut builder = Builder::new();
        builder.entry(&spec);
        let snapshot = builder.snapshot();
        assert!(snapshot.metrics.is_empty(), "{spec:?}");
        let said = snapshot
            .problems
            .iter()
            .any(|problem| problem.ends_with(why));
        assert!(said, "{:?}", snapshot.problems);
    }
}

#[test]
fn hostile_words_make_some_value() {
    for bias in [
        [word(i64::MIN), word(i64::MAX), word(-5), 0],
        [u64::MAX, 0, u64::MAX, 0],
        [word(i64::MAX), word(i64::MIN), word(i64::MAX - 1), 0],
    ] {
        let mut builder = Builder::new();
        builder.entry(&batches("a", 0, 1));
        builder.words(CPU, 0, &[u64::MAX, 1]).words(BIAS, 0, &bias);
        let snapshot = builder.snapshot();
        assert!(matches!(named(&snapshot, "a").value, Value::Batch(_)));
    }
}

#[test]
fn growth_is_what_the_sum_changed_by() {
    let mut builder = Builder::new();
    builder.entry(&batches("a", 0, 1));
    builder
        .words(CPU, 0, &[40, 0])
        .words(BIAS, 0, &[0, 0, 93, 0]);
    let before = builder.snapshot();
    builder
        .words(CPU, 0, &[30, 32])
        .words(BIAS, 0, &[32, 32, 93, 0]);
    let grown = growth(&before, &builder.snapshot());
    assert_eq!(
        grown[0].metric.value,
        Value::Batch(bounded(-10, 32, Some(186)))
    );
    assert!(!grown[0].reset);
}
