//! Regions that change while they are read.

use std::sync::{Arc, Mutex};

use crate::layout::{Layout, entry};
use crate::reader::Value;
use crate::reader::testing::{
    BIAS, Builder, CPU, Live, Random, SHARED, Spec, bump, count, counter, gauge, life, named, span,
    word,
};

/// Where lanes' words are, with the sum that they have now.
#[derive(Clone, Debug)]
struct Words {
    bias: usize,
    lanes: [usize; 3],
}

impl Words {
    fn of(builder: &Builder, first: u64) -> Self {
        Words {
            bias: builder.word_at(0, BIAS, first),
            lanes: [SHARED, CPU, CPU + 1].map(|lane| builder.word_at(0, lane, first)),
        }
    }

    fn sum(&self, bytes: &mut [u8]) -> u64 {
        let places = self.lanes.iter().chain([&self.bias]);
        places.fold(0, |sum, at| {
            sum.wrapping_add(u64::from_ne_bytes(*word(bytes, *at)))
        })
    }

    /// What a reset does.
    fn take(&self, bytes: &mut [u8]) {
        let sum = self.sum(bytes);
        bump(bytes, self.bias, 0_u64.wrapping_sub(sum));
    }
}

/// Counts and resets at random, and notes every value that the counter has.
fn storm(
    words: &Words,
    random: &mut Random,
    resets: u64,
    bytes: &mut [u8],
    history: &mut Vec<u64>,
) {
    for _ in 0..random.below(4) {
        match random.below(100) < resets {
            true => words.take(bytes),
            false => bump(bytes, words.lanes[random.below(3) as usize], 1),
        }
        history.push(words.sum(bytes));
    }
}

/// Reads a counter in a storm, and returns the value and all values that the counter had meanwhile.
fn read_in_storm(seed: u64, resets: u64) -> (u64, bool, Vec<u64>) {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 3));
    let words = Words::of(&builder, 3);
    let history = Arc::new(Mutex::new(vec![0]));
    let (noted, mut random) = (Arc::clone(&history), Random(seed));
    let region = Live::region(builder.bytes, move |bytes, _| {
        storm(
            &words,
            &mut random,
            resets,
            bytes,
            &mut noted.lock().expect("not poisoned"),
        );
    });
    let snapshot = region.snapshot().expect("a snapshot");
    let torn = named(&snapshot, "a").torn;
    let history = history.lock().expect("not poisoned").clone();
    (count(&snapshot, "a"), torn, history)
}

#[test]
fn a_sum_is_one_that_the_counter_had() {
    let mut torn = 0;
    for seed in 0..3000 {
        let (value, is_torn, history) = read_in_storm(seed, 5);
        let most = history.iter().max().copied().unwrap_or(0);
        assert!(
            is_torn || value <= most,
            "seed {seed}: {value} of at most {most}"
        );
        torn += usize::from(is_torn);
    }
    assert!(torn < 300, "{torn} of 3000 were torn");
}

#[test]
fn without_resets_it_lies_between_the_beginning_and_the_end() {
    for seed in 0..500 {
        let (value, torn, history) = read_in_storm(seed, 0);
        assert!(!torn && history.contains(&value), "seed {seed}: {value}");
    }
}

/// The mutant: lanes first, and the bias once, after them.
#[test]
fn lanes_before_bias_would_give_sums_below_zero() {
    let mut below = 0;
    for seed in 0..300 {
        let builder = Builder::new();
        let words = Words::of(&builder, 3);
        let (stormy, mut random) = (words.clone(), Random(seed));
        let source = Live::source(builder.bytes, move |bytes, _| {
            storm(&stormy, &mut random, 20, bytes, &mut Vec::new());
        });
        let mut sum = 0_u64;
        for at in words.lanes.iter().chain([&words.bias]) {
            let mut bytes = [0; 8];
            source.read_at(&mut bytes, *at as u64).expect("read");
            sum = sum.wrapping_add(u64::from_ne_bytes(bytes));
        }
        below += usize::from(sum > 1 << 63);
    }
    assert!(below > 0, "the mutant was not found");
}

#[test]
fn what_is_reset_again_and_again_is_torn() {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.entry(&counter("b", 1));
    builder.words(CPU, 0, &[100, 7]);
    let bias = builder.word_at(0, BIAS, 0);
    let region = Live::region(builder.bytes, move |bytes, offset| {
        if offset == bias as u64 {
            bump(bytes, bias, u64::MAX);
        }
    });
    let snapshot = region.snapshot().expect("a snapshot");
    assert!(named(&snapshot, "a").torn);
    assert!(!named(&snapshot, "b").torn);
    assert_eq!(count(&snapshot, "b"), 7);
}

#[test]
fn a_gauge_between_bounds() {
    let mut mutant = 0;
    for seed in 0..1000 {
        // Goes up on one lane, and down on another: always 0 or 1.
        let mut builder = Builder::new();
        builder.entry(&gauge("a", 0));
        let at = [SHARED, CPU, CPU + 1].map(|lane| builder.word_at(0, lane, 0));
        let (mut random, mut now) = (Random(seed), 0_usize);
        let storm = move |bytes: &mut Vec<u8>, _| {
            for _ in 0..random.below(7) {
                bump(bytes, at[random.below(3) as usize] + 8 * now, 1);
                now = 1 - now;
            }
        };
        let region = Live::region(builder.bytes.clone(), storm.clone());
        let snapshot = region.snapshot().expect("a snapshot");
        let Value::Gauge(gauge) = named(&snapshot, "a").value else {
            panic!("no gauge");
        };
        assert!(gauge.low <= gauge.high, "seed {seed}: {gauge:?}");
        assert!(gauge.low <= 1 && gauge.high >= 0, "seed {seed}: {gauge:?}");

        // The mutant: each lane's ups and downs once.
        let source = Live::source(builder.bytes, storm);
        let mut value = 0_u64;
        for at in at {
            let mut bytes = [0; 16];
            source.read_at(&mut bytes, at as u64).expect("read");
            let (up, down) = bytes.split_at_mut(8);
            let (up, down) = (
                u64::from_ne_bytes(*word(up, 0)),
                u64::from_ne_bytes(*word(down, 0)),
            );
            value = value.wrapping_add(up).wrapping_sub(down);
        }
        mutant += usize::from(!(0..=1).contains(&value.cast_signed()));
    }
    assert!(mutant > 0, "the mutant was not found");
}

#[test]
fn an_entry_that_is_used_again_meanwhile_is_void() {
    // Retired, or ready in another generation; at any read.
    for (state, generation) in [(3, 1), (1, 2), (2, 2)] {
        for moment in 0..40 {
            let mut builder = Builder::new();
            builder.entry(&counter("a", 0));
            builder.words(CPU, 0, &[5]);
            let life_at = builder.entry_at(0, entry::LIFE);
            let name_at = builder.entry_at(0, entry::TEXT);
            let value_at = builder.word_at(0, CPU, 0);
            let mut reads = 0;
            let region = Live::region(builder.bytes, move |bytes, _| {
                if reads == moment {
                    *word(bytes, life_at) = life(state, generation).to_ne_bytes();
                    bytes[name_at] = b'b';
                    *word(bytes, value_at) = 9_u64.to_ne_bytes();
                }
                reads += 1;
            });
            let snapshot = region.snapshot().expect("a snapshot");
            for metric in &snapshot.metrics {
                let expected = if metric.name == "a" { 5 } else { 9 };
                assert_eq!(
                    metric.value,
                    Value::Counter(expected),
                    "{state} {generation} at {moment}"
                );
            }
            assert_eq!(snapshot.problems, [""; 0]);
        }
    }
}

#[test]
fn words_that_move_to_another_entry_meanwhile_do_not_overlap() {
    for moment in 0..40 {
        // In different chunks of entries, as they are read.
        let mut builder = Builder::with(Layout::new(2, 256, 1).expect("allowed"));
        builder.entry(&counter("a", 0));
        for number in 1..200 {
            builder.entry(&counter("filler", number));
        }
        builder.entry(&Spec {
            life: life(1, 1),
            ..counter("b", 0)
        });
        let (first, last) = (
            builder.entry_at(0, entry::LIFE),
            builder.entry_at(200, entry::LIFE),
        );
        let mut reads = 0;
        let region = Live::region(builder.bytes, move |bytes, _| {
            if reads == moment {
                *word(bytes, first) = life(3, 1).to_ne_bytes();
                *word(bytes, last) = life(2, 1).to_ne_bytes();
            }
            reads += 1;
        });
        let snapshot = region.snapshot().expect("a snapshot");
        assert_eq!(snapshot.problems, [""; 0], "at {moment}");
    }
}

#[test]
fn extremes_are_not_mixed_with_those_of_another_generation() {
    for moment in 0..40 {
        let mut builder = Builder::new();
        builder.entry(&span("a", 0, false));
        builder.words(BIAS, 4, &[1]);
        builder.words(CPU, 0, &[2, 300, 0, 0, 1, 200, 1, 100]);
        let bias = builder.word_at(0, BIAS, 4);
        let extremes = builder.word_at(0, CPU, 4);
        let mut reads = 0;
        let region = Live::region(builder.bytes, move |bytes, _| {
            // A reset of the extremes, and one longer sample.
            if reads == moment {
                *word(bytes, bias) = 2_u64.to_ne_bytes();
                for (number, value) in [2_u64, 5000, 2, 5000].into_iter().enumerate() {
                    *word(bytes, extremes + 8 * number) = value.to_ne_bytes();
                }
            }
            reads += 1;
        });
        let snapshot = region.snapshot().expect("a snapshot");
        let Value::Span(span) = &named(&snapshot, "a").value else {
            panic!("no span");
        };
        let times = span.times.map(|times| (times.min, times.max));
        assert!(
            matches!(times, Some((100, 200) | (5000, 5000))),
            "at {moment}: {times:?}"
        );
    }
}

#[test]
fn a_region_that_shrinks_loses_metrics_and_says_so() {
    for moment in 1..30 {
        let mut builder = Builder::new();
        builder.entry(&counter("a", 0));
        builder.words(CPU + 1, 0, &[5]);
        let mut reads = 0;
        let region = Live::region(builder.bytes, move |bytes, _| {
            if reads == moment {
                bytes.truncate(100);
            }
            reads += 1;
        });
        match region.snapshot() {
            Ok(snapshot) if snapshot.metrics.is_empty() => {
                assert!(!snapshot.problems.is_empty(), "at {moment}");
            }
            Ok(snapshot) => assert_eq!(count(&snapshot, "a"), 5, "at {moment}"),
            Err(error) => assert!(error.to_string().contains("went away"), "{error}"),
        }
    }
}

/// As when the reader copies a generation and its value one after the other.
#[test]
fn a_generation_is_not_read_with_the_value_of_the_one_before() {
    for moment in 0..40 {
        let mut builder = Builder::new();
        builder.entry(&span("a", 0, false));
        builder.words(BIAS, 4, &[2]);
        builder.words(CPU, 0, &[2, 300, 0, 0, 1, 9999, 1, 3]);
        let extremes = builder.word_at(0, CPU, 4);
        let mut reads = 0;
        let region = Live::region(builder.bytes, move |bytes, _| {
            let words = match reads {
                now if now == moment => [(0, 2), (2, 2)],
                now if now == moment + 1 => [(1, 50), (3, 50)],
                _ => [(0, 0); 2],
            };
            for (number, value) in words.into_iter().filter(|word| word.1 != 0) {
                *word(bytes, extremes + 8 * number) = u64::to_ne_bytes(value);
            }
            reads += 1;
        });
        let snapshot = region.snapshot().expect("a snapshot");
        let Value::Span(span) = &named(&snapshot, "a").value else {
            panic!("no span");
        };
        let times = span.times.map(|times| (times.min, times.max));
        assert!(
            matches!(times, None | Some((50, 50))),
            "at {moment}: {times:?}"
        );
    }
}

/// As when the reader copies an entry's life and text in any order.
#[test]
fn an_entry_is_not_read_with_the_text_of_the_one_before() {
    let mut seen = 0;
    for moment in 0..40 {
        let mut builder = Builder::new();
        builder.entry(&counter("old", 0));
        let (life_at, text_at) = (
            builder.entry_at(0, entry::LIFE),
            builder.entry_at(0, entry::TEXT),
        );
        let mut reads = 0;
        let region = Live::region(builder.bytes, move |bytes, _| {
            if reads == moment {
                *word(bytes, life_at) = life(2, 2).to_ne_bytes();
            } else if reads == moment + 1 {
                bytes[text_at..text_at + 3].copy_from_slice(b"new");
            }
            reads += 1;
        });
        for metric in region.snapshot().expect("a snapshot").metrics {
            let expected = if metric.generation == 1 { "old" } else { "new" };
            assert_eq!(metric.name, expected, "at {moment}");
            seen += metric.generation - 1;
        }
    }
    assert!(seen > 0);
}
