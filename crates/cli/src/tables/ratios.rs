//! Lines that hold one measured point against another, and what can be said of them together.

use countersink_harness::result::{ExperimentResult, PointResult};
use countersink_harness::stats::Ratio;
use countersink_harness::verdict::{Verdict, judge};

use crate::tables as table;

/// Lines of one list. The verdicts on them are made together, since the more comparisons there are the more look different by chance.
pub(crate) struct Ratios<'a> {
    measured: &'a ExperimentResult,
    lines: Vec<Line>,
}

struct Line {
    label: String,
    ratio: Ratio,
    floor: Option<f64>,
    is_sound: bool,
    /// What follows the verdict.
    rest: String,
}

impl<'a> Ratios<'a> {
    pub(crate) fn new(measured: &'a ExperimentResult) -> Self {
        Ratios {
            measured,
            lines: Vec::new(),
        }
    }

    /// Holds one against the other, by the ratio of their times, and against an aim if there is one. Nothing where they share no
    /// rounds.
    pub(crate) fn add(
        &mut self,
        label: String,
        (one, other): (&PointResult, &PointResult),
        aim: Option<f64>,
    ) {
        let Some(ratio) = one.ratio_to(other) else {
            return;
        };
        let floors = [one, other].map(|point| self.measured.noise_floor(point.threads));
        let floor = floors.into_iter().flatten().max_by(f64::total_cmp);
        self.lines.push(Line {
            label,
            rest: table::verdict(&ratio, aim),
            floor,
            is_sound: one.is_sound() && other.is_sound(),
            ratio,
        });
    }

    /// Adds to the line that was added last.
    pub(crate) fn note(&mut self, note: &str) {
        if let Some(line) = self.lines.last_mut() {
            line.rest += note;
        }
    }

    /// A line for each, and under them what the words mean. Empty if there are none.
    pub(crate) fn text(&self) -> String {
        let pairs: Vec<_> = self
            .lines
            .iter()
            .map(|line| (line.ratio, line.floor))
            .collect();
        let lines = self.lines.iter().zip(judge(&pairs)).map(|(line, verdict)| {
            let verdict = match line.is_sound {
                true => verdict.name(),
                false => Verdict::CannotTell.name(),
            };
            let mark = if line.is_sound { "" } else { " !" };
            let ratio = table::ratio(&line.ratio);
            format!("  {}: {ratio}{mark}, {verdict}{}\n", line.label, line.rest)
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use countersink_harness::result::Noise;
    use countersink_harness::surroundings::{Disturbance, Surroundings};

    use super::*;

    fn point(variant: &str, around: f64) -> PointResult {
        let samples = (0..16).map(|at| around * (1.0 + 0.001 * (at % 5) as f64));
        PointResult::of(variant, ("op", "p", 1), samples.collect()).expect("a point")
    }

    #[test]
    fn lines_have_verdicts_aims_and_marks() {
        let mut measured = ExperimentResult::new("some");
        let (one, same, mut half) = (point("one", 10.0), point("same", 10.0), point("half", 5.0));
        half.samples[3] *= 1.01;
        measured.points.push(one.clone());
        measured.noise.push(Noise {
            variant: "one".to_owned(),
            op: "op".to_owned(),
            pattern: "p".to_owned(),
            threads: 1,
            processes: 1,
            samples: one.samples.iter().map(|sample| sample * 1.02).collect(),
        });
        let mut ratios = Ratios::new(&measured);
        ratios.add("half / one".to_owned(), (&half, &one), Some(0.6));
        ratios.note("; noted");
        ratios.add("same / one".to_owned(), (&same, &one), None);
        half.surroundings = vec![
            Surroundings {
                disturbed: vec![Disturbance::Steal],
                ..Surroundings::default()
            };
            9
        ];
        ratios.add("disturbed / one".to_owned(), (&half, &one), None);
        let text = ratios.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("], faster; aim: at most 0.6, reached; noted"),
            "{text}"
        );
        assert_eq!(lines[1], "  same / one: 1.000 [1.000, 1.000], same");
        assert!(lines[2].ends_with("] !, cannot tell"), "{text}");
    }
}
