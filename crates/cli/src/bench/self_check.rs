//! `bench --self-check`: whether verdicts keep their promise, and what the harness itself takes.

use std::process::ExitCode;
use std::time::Duration;

use countersink_harness::measure::MeasureError;
use countersink_harness::progress::Progress;
use countersink_harness::schedule::Plan;
use countersink_harness::self_check::noise::{self, Noise};
use countersink_harness::self_check::{
    ALIKE, DIFFERENCES, Overhead, PLANTED, POWER, TOLERATED_OVERHEAD, Tally, compare,
    compare_invented, overhead,
};
use countersink_harness::threads::ThreadRunner;
use countersink_harness::verdict::PROMISED;

use super::ENDED;
use super::length::{LONGEST_SAMPLES, SHORTEST_SAMPLE};
use super::progress::Bar;
use crate::output::{print, wrap};
use crate::tables::{header, numbers};

/// The seed of the invented noise.
const SEED: u64 = 1;
/// The noise for which the power is promised.
const PLANTED_IN: Noise = Noise::Normal(0.01);
/// How the comparisons on this machine are measured.
const ROUNDS: usize = 6;
const SAMPLE: Duration = SHORTEST_SAMPLE;

/// Checks, and says which promises were not kept.
///
/// # Errors
/// A measurement that failed.
pub(super) fn run() -> anyhow::Result<ExitCode> {
    let mut bar = Bar::new("self-check", 1);
    let found = Found::of(&mut bar);
    let is_ended = bar.is_stopped();
    bar.finish();
    let found = found?;
    if is_ended {
        eprintln!("countersink: ended");
        return Ok(ExitCode::from(ENDED));
    }
    let broken = found.broken();
    let mut text = found.text();
    text += &match broken.is_empty() {
        true => "\nAll promises are kept.\n".to_owned(),
        false => format!("\nNot kept: {}.\n", broken.join("; ")),
    };
    print(&text)?;
    match broken.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// What came of it.
struct Found {
    /// Comparisons of what is alike, by noise.
    alike: Vec<(String, Tally)>,
    /// Differences planted in invented noise.
    planted: Vec<Tally>,
    /// The same on this machine.
    alike_here: Tally,
    planted_here: Vec<Tally>,
    own: Vec<(Duration, Overhead)>,
}

impl Found {
    fn of(bar: &mut Bar) -> Result<Found, MeasureError> {
        let plan = Plan::default();
        let mut alike = Vec::new();
        for noise in noise::ALL {
            let tally = compare_invented(ALIKE, 0.0, (noise, SEED), &plan, bar)?;
            alike.push((noise.name(), tally));
        }
        let planted = DIFFERENCES.map(|difference| {
            compare_invented(PLANTED, difference, (PLANTED_IN, SEED), &plan, bar)
        });
        let mut runner = ThreadRunner::new();
        // Two constants, which are valid.
        let real = Plan::new(SAMPLE, ROUNDS).unwrap_or_default();
        let alike_here = compare(ALIKE, 0.0, &mut runner, &real, bar)?;
        let mut planted_here = Vec::new();
        for difference in DIFFERENCES {
            planted_here.push(compare(PLANTED, difference, &mut runner, &real, bar)?);
        }
        let mut own = Vec::new();
        for length in [SHORTEST_SAMPLE].into_iter().chain(LONGEST_SAMPLES) {
            own.push((length, overhead(&mut runner, length)?));
        }
        Ok(Found {
            alike,
            planted: planted.into_iter().collect::<Result<_, _>>()?,
            alike_here,
            planted_here,
            own,
        })
    }

    /// The promises that were not kept, in words.
    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let here = ("this machine".to_owned(), self.alike_here);
        for (noise, tally) in self.alike.iter().chain([&here]) {
            if tally.different() > PROMISED {
                broken.push(format!(
                    "{noise}: {} of what is alike was called different",
                    percent(tally.different())
                ));
            }
        }
        for ((difference, power), tally) in DIFFERENCES.iter().zip(POWER).zip(&self.planted) {
            if tally.found() < power {
                broken.push(format!(
                    "of {} that was planted, {} was found",
                    percent(*difference),
                    percent(tally.found())
                ));
            }
        }
        for (length, own) in &self.own {
            if own.inside > TOLERATED_OVERHEAD {
                broken.push(format!(
                    "{} of the timed part of samples of {length:?} is the harness",
                    percent(own.inside)
                ));
            }
        }
        broken
    }

    fn text(&self) -> String {
        let mut text = wrap(
            &format!(
                "{ALIKE} comparisons of what is alike, with {} rounds in invented noise (seed {SEED}), and with {ROUNDS} rounds of {SAMPLE:?} \
                 samples on this machine: how many are called different, each by itself, which is promised to be at most {}, and in one \
                 table by Holm.",
                Plan::default().rounds(),
                percent(PROMISED)
            ),
            0,
        );
        let row = |(noise, tally): &(String, Tally)| {
            vec![
                noise.clone(),
                percent(tally.floor),
                (tally.slower + tally.faster).to_string(),
                tally.in_table.to_string(),
                tally.same.to_string(),
            ]
        };
        let here = ("this machine".to_owned(), self.alike_here);
        let rows: Vec<_> = self.alike.iter().chain([&here]).map(row).collect();
        let names = ["floor", "different", "in a table", "same"].map(str::to_owned);
        text += &format!("\n{}\n", numbers(&header("noise", names), &rows));
        text += &wrap(
            &format!(
                "{PLANTED} comparisons each of what differs: how many are found. What is promised holds for samples that vary by 1 %; what \
                 this machine finds depends on its noise, here a floor of {}, since no difference within the floor is called one.",
                percent(self.alike_here.floor)
            ),
            0,
        );
        let found = self.planted.iter().zip(&self.planted_here);
        let rows = found.zip(DIFFERENCES.iter().zip(POWER)).map(
            |((invented, here), (difference, power))| {
                vec![
                    percent(*difference),
                    percent(invented.found()),
                    percent(power),
                    percent(here.found()),
                ]
            },
        );
        let names = ["normal, 1 %", "promised", "this machine"].map(str::to_owned);
        text += &format!(
            "\n{}\n",
            numbers(&header("planted", names), &rows.collect::<Vec<_>>())
        );
        text += &wrap(
            &format!(
                "The harness's own time, the least of several samples: in the timed part, promised to be at most {}; and outside of it, to start threads, \
                 find the batch size and ask the kernel, which no figure has in it.",
                percent(TOLERATED_OVERHEAD)
            ),
            0,
        );
        let rows = self.own.iter().map(|(length, own)| {
            vec![
                format!("{length:?}"),
                format!("{:.3} %", 100.0 * own.inside),
                format!("{:.0} us", own.outside_ns / 1e3),
                percent(own.outside_ns / length.as_nanos() as f64),
            ]
        });
        let names = ["timed part", "outside", "of the sample"].map(str::to_owned);
        text + &format!(
            "\n{}",
            numbers(&header("sample", names), &rows.collect::<Vec<_>>())
        )
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Found {
        let tally = |slower| Tally {
            comparisons: 100,
            slower,
            same: 100 - slower,
            ..Tally::default()
        };
        Found {
            alike: vec![("spikes".to_owned(), tally(5))],
            planted: POWER.map(|power| tally((100.0 * power) as usize)).to_vec(),
            alike_here: tally(2),
            planted_here: vec![tally(0); DIFFERENCES.len()],
            own: vec![(
                SAMPLE,
                Overhead {
                    inside: 0.001,
                    outside_ns: 2e5,
                },
            )],
        }
    }

    #[test]
    fn each_promise_that_is_broken_is_named() {
        let found = kept();
        assert_eq!(found.broken(), Vec::<String>::new());
        let text = found.text();
        let of_samples: Vec<&str> = match text.lines().last() {
            Some(line) => line
                .split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect(),
            None => Vec::new(),
        };
        assert_eq!(of_samples, ["2ms", "0.100 %", "200 us", "10.0 %"], "{text}");
        let mut alike = kept();
        alike.alike_here.slower = 6;
        let mut planted = kept();
        planted.planted[3].slower -= 1;
        let mut own = kept();
        own.own[0].1.inside = 0.02;
        for (found, said) in [
            (
                alike,
                "this machine: 6.0 % of what is alike was called different",
            ),
            (planted, "of 10.0 % that was planted, 97.0 % was found"),
            (
                own,
                "2.0 % of the timed part of samples of 2ms is the harness",
            ),
        ] {
            assert_eq!(found.broken(), [said]);
        }
    }
}
