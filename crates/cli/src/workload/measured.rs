//! What was measured of a workload, and the forms that it is told in.

use std::collections::BTreeSet;
use std::path::Path;

use countersink_experiments::workload::{Mode, Sample, Workload};
use countersink_harness::cpus::Topology;
use countersink_harness::machine::Machine;
use countersink_harness::result::{ExperimentResult, PointResult, Results};
use countersink_harness::save;
use countersink_harness::schedule::SAMPLES_PER_ROUND;
use countersink_harness::stats::{Ratio, median};

use super::Way;
use crate::table::table;

/// The samples of one counter at one point.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) way: Way,
    pub(super) mode: Mode,
    pub(super) tasks: usize,
    pub(super) samples: Vec<Sample>,
    /// How many samples were disturbed and taken again.
    pub(super) repeated: usize,
}

impl Measured {
    fn of(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        let figures: Vec<f64> = self.samples.iter().map(figure).collect();
        median(&figures).unwrap_or(0.0)
    }

    fn rate(&self) -> f64 {
        self.of(Sample::per_second)
    }

    /// Time of a task for an operation.
    fn nanoseconds(&self) -> Vec<f64> {
        let tasks = self.tasks as f64;
        let samples = self.samples.iter();
        samples
            .map(|sample| 1e9 * tasks / sample.per_second())
            .collect()
    }

    /// The slowest task's operations by the fastest one's.
    fn fairness(sample: &Sample) -> f64 {
        let operations = || sample.operations.iter().copied();
        let (least, most) = (operations().min(), operations().max());
        least.unwrap_or(0) as f64 / most.unwrap_or(0).max(1) as f64
    }

    /// In the form that experiments' points have.
    fn point(&self, workload: Workload) -> Option<PointResult> {
        let fairness: Vec<f64> = self.samples.iter().map(Measured::fairness).collect();
        let key = (workload.name(), self.mode.name(), self.tasks);
        let place = Topology::detect().place(self.tasks);
        let met = self
            .samples
            .iter()
            .map(|sample| sample.surroundings.clone());
        Some(PointResult {
            pinned: self.samples.iter().all(|sample| sample.pinned),
            oversubscribed: self.samples.iter().any(|sample| sample.oversubscribed),
            shared_cores: place.shared_cores,
            cpus: place.cpus,
            fairness: median(&fairness)?,
            fairness_samples: fairness,
            repeated: self.repeated,
            surroundings: met.collect(),
            ..PointResult::of(self.way.bump().name(), key, self.nanoseconds())?
        })
    }

    /// Whether so few samples were disturbed that the rest tells something.
    fn is_sound(&self, workload: Workload) -> bool {
        self.point(workload).is_none_or(|point| point.is_sound())
    }

    fn label(&self) -> String {
        let kind = match (self.mode, self.tasks) {
            (Mode::Processes, 1) => "process",
            (Mode::Threads, 1) => "thread",
            (mode, _) => mode.name(),
        };
        let more = match self.samples.iter().any(|sample| sample.oversubscribed) {
            true => " (more than CPUs)",
            false => "",
        };
        format!("{} {kind}{more}", self.tasks)
    }
}

pub(super) fn line(workload: Workload, point: &[Measured]) -> String {
    let Some(first) = point.first() else {
        return String::new();
    };
    let name = workload.name();
    let rows: Vec<Vec<String>> = point
        .iter()
        .map(|measured| {
            vec![
                measured.way.bump().name().to_owned(),
                format!("{:.0}", measured.rate()),
                format!("{:.0}", measured.of(|sample| sample.per_cpu_second)),
                format!(
                    "{:.1}{}",
                    median(&measured.nanoseconds()).unwrap_or(0.0),
                    if measured.is_sound(workload) {
                        ""
                    } else {
                        " !"
                    }
                ),
                format!("{:.2}", measured.of(Measured::fairness)),
                format!("{:.0}", measured.of(|sample| sample.idle)),
            ]
        })
        .collect();
    // The mails call them by what is counted.
    let (second, cpu) = match workload {
        Workload::Pft => ("faults/sec", "faults/cpu"),
        _ => ("ops/sec", "ops/cpu"),
    };
    let header = ["counter", second, cpu, "ns/op", "fairness", "idle %"];
    format!(
        "\n{name}, {}\n{}",
        first.label(),
        table(&header, &rows, 1..header.len())
    )
}

/// Each counter against the first one, where there are several.
pub(super) fn verdicts(workload: Workload, measured: &[Measured]) -> String {
    let mut text = String::new();
    let mut first: Option<&Measured> = None;
    for point in measured {
        let base = match first {
            Some(base) if (base.mode, base.tasks) == (point.mode, point.tasks) => base,
            _ => {
                first = Some(point);
                continue;
            }
        };
        let ratio = Ratio::paired(&base.nanoseconds(), &point.nanoseconds(), SAMPLES_PER_ROUND);
        let Some(ratio) = ratio else { continue };
        let is_sound = base.is_sound(workload) && point.is_sound(workload);
        let interval = ratio.ci95.map_or(String::new(), |[low, high]| {
            format!(" [{low:.4}, {high:.4}]")
        });
        let verdict = match ratio.ci95 {
            Some([low, _]) if is_sound && low > 1.0 => "won",
            Some([_, high]) if is_sound && high < 1.0 => "lost",
            _ => "cannot tell",
        };
        text += &format!(
            "  {} / {}, {}: {:.4}{interval}: {verdict}\n",
            point.way.bump().name(),
            base.way.bump().name(),
            point.label(),
            ratio.of_medians,
        );
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\nRates against the first counter's, with their 95 % interval over the rounds\n\n{text}"
    )
}

/// will-it-scale's columns: rates as whole numbers, a kind of task that was not run as -1.
fn csv(measured: &[Measured]) -> String {
    let mut text =
        "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n".to_owned();
    // The first counter of each point.
    let find = |tasks, mode| {
        let mut points = measured.iter();
        points.find(|point| (point.tasks, point.mode) == (tasks, mode))
    };
    let tasks: BTreeSet<usize> = measured.iter().map(|point| point.tasks).collect();
    let rate = |tasks, mode| find(tasks, mode).map_or(-1, |point| point.rate() as i64);
    let idle = |tasks, mode| find(tasks, mode).map_or(0.0, |point| point.of(|s| s.idle));
    // Without a run of one task, the fewest stand for it.
    let fewest = tasks.first().copied().unwrap_or(1);
    let one = rate(fewest, Mode::Processes).max(rate(fewest, Mode::Threads)) / fewest as i64;
    for tasks in tasks {
        text += &format!(
            "{tasks},{},{:.2},{},{:.2},{}\n",
            rate(tasks, Mode::Processes),
            idle(tasks, Mode::Processes),
            rate(tasks, Mode::Threads),
            idle(tasks, Mode::Threads),
            one * tasks as i64,
        );
    }
    text
}

pub(super) fn write_csv(
    directory: &Path,
    workload: Workload,
    measured: &[Measured],
) -> anyhow::Result<()> {
    let path = |ending| directory.join(format!("{}.{ending}", workload.name()));
    save::save(&path("csv"), csv(measured).as_bytes())?;
    save::save(&path("title"), format!("{}\n", workload.title()).as_bytes())?;
    Ok(())
}

/// The results in the form that experiments have.
pub(super) fn results(machine: Machine, workload: Workload, measured: &[Measured]) -> Results {
    let mut results = Results::new(machine);
    let points = measured
        .iter()
        .filter_map(|measured| measured.point(workload));
    let mut experiment = ExperimentResult::new("workload");
    experiment.points.extend(points);
    results.experiments.push(experiment);
    results
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use countersink_harness::surroundings::Surroundings;

    use super::*;

    fn point(way: Way, mode: Mode, tasks: usize, rates: &[u64]) -> Measured {
        let sample = |rate: &u64| Sample {
            window: Duration::from_secs(1),
            operations: vec![*rate / tasks as u64; tasks],
            per_cpu_second: *rate as f64,
            idle: 12.5,
            pinned: true,
            oversubscribed: false,
            surroundings: Surroundings::default(),
        };
        Measured {
            way,
            mode,
            tasks,
            samples: rates.iter().map(sample).collect(),
            repeated: 0,
        }
    }

    #[test]
    fn columns_are_those_of_will_it_scale() {
        let measured = [
            point(Way::None, Mode::Processes, 1, &[1000; 2]),
            point(Way::Carry, Mode::Processes, 1, &[1; 2]),
            point(Way::None, Mode::Threads, 1, &[1100; 2]),
            point(Way::None, Mode::Processes, 2, &[2000; 2]),
        ];
        assert_eq!(
            csv(&measured),
            "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n\
             1,1000,12.50,1100,12.50,1100\n2,2000,12.50,-1,0.00,2200\n"
        );
    }

    #[test]
    fn verdicts_need_the_whole_interval() {
        let rates = |middle: u64, spread: u64| -> Vec<u64> {
            (0..12).map(|at| middle + spread * (at / 2 % 2)).collect()
        };
        let measured = [
            point(Way::None, Mode::Threads, 1, &rates(1_000_000, 0)),
            point(Way::Carry, Mode::Threads, 1, &rates(1_000_000, 1000)),
            point(Way::Kernel, Mode::Threads, 1, &rates(900_000, 1000)),
            point(Way::Masked, Mode::Threads, 1, &rates(999_000, 2000)),
            point(Way::None, Mode::Threads, 2, &rates(1_000_000, 0)),
        ];
        let text = verdicts(Workload::GetPpid, &measured);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('/')).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].ends_with("cannot tell"), "{text}");
        assert!(lines[1].ends_with("lost"), "{text}");
        assert!(lines[2].ends_with("cannot tell"), "{text}");
    }

    #[test]
    fn tasks_have_names() {
        let label = |mode, tasks| point(Way::None, mode, tasks, &[]).label();
        assert_eq!(label(Mode::Processes, 1), "1 process");
        assert_eq!(label(Mode::Processes, 2), "2 processes");
        assert_eq!(label(Mode::Threads, 1), "1 thread");
        assert_eq!(label(Mode::Threads, 2), "2 threads");
    }
}
