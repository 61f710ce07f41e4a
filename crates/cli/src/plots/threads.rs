//! Rates or times by the number of threads.

use std::collections::BTreeSet;

use clap::ValueEnum;
use countersink_harness::cpus::count_cpu_list;
use countersink_harness::machine::Machine;
use countersink_harness::result::PointResult;

use super::canvas::{Axis, Svg, draw as draw_on};
use super::scale;

/// What is drawn by threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Values {
    /// Operations of all threads
    #[default]
    Rate,
    /// What an operation takes
    Time,
}

impl Values {
    pub(super) fn word(self) -> &'static str {
        match self {
            Values::Rate => "rate",
            Values::Time => "time",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Values::Rate => "Operations of all threads in a microsecond",
            Values::Time => "Wall time of an operation of one thread",
        }
    }

    pub(super) fn linear(self) -> &'static str {
        match self {
            Values::Rate => {
                "Linear: the best with the fewest threads, times the threads. Where there are more threads than CPUs they take turns."
            }
            Values::Time => {
                "Linear: the best with the fewest threads, whose time does not grow. Where there are more threads than CPUs they take turns."
            }
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Values::Rate => "million operations/s",
            Values::Time => "ns/op",
        }
    }

    /// Of an operation's wall time, which is the time of one thread.
    pub(super) fn of(self, threads: usize, ns: f64) -> f64 {
        match self {
            Values::Rate => threads as f64 * 1e3 / ns,
            Values::Time => ns,
        }
    }

    fn of_linear(self, ratio: f64, first: f64) -> f64 {
        match self {
            Values::Rate => first * ratio,
            Values::Time => first,
        }
    }

    fn best(self, values: impl Iterator<Item = f64>) -> Option<f64> {
        match self {
            Values::Rate => values.max_by(f64::total_cmp),
            Values::Time => values.min_by(f64::total_cmp),
        }
    }
}

/// Draws points of one operation and pattern. `None` if all have as many threads.
pub(super) fn draw(
    title: &str,
    machine: &Machine,
    points: &[&PointResult],
    values: Values,
) -> anyhow::Result<Option<Svg>> {
    let threads: BTreeSet<usize> = points.iter().map(|point| point.threads).collect();
    let (Some(fewest), Some(most)) = (threads.first().copied(), threads.last().copied()) else {
        return Ok(None);
    };
    if fewest == most {
        return Ok(None);
    }
    let mut variants: Vec<String> = Vec::new();
    for point in points {
        if !variants.contains(&point.variant) {
            variants.push(point.variant.clone());
        }
    }
    let at = |threads: usize| (threads as f64).log2();
    let of = |point: &PointResult, ns: f64| values.of(point.threads, ns).log10();
    let ends = points.iter().flat_map(|point| {
        let wall = &point.wall;
        [of(point, wall.min), of(point, wall.max)]
    });
    let ends: Vec<f64> = ends.collect();
    let first = points.iter().filter(|point| point.threads == fewest);
    let first = values.best(first.map(|point| values.of(fewest, point.wall.median)));
    let linear = first.map(|first| {
        let ratio = most as f64 / fewest as f64;
        [
            (at(fewest), first.log10()),
            (at(most), values.of_linear(ratio, first).log10()),
        ]
    });
    let heights = ends
        .iter()
        .copied()
        .chain(linear.iter().flatten().map(|(_, y)| *y));
    let low = heights.clone().fold(f64::INFINITY, f64::min) - 0.1;
    let high = heights.fold(f64::NEG_INFINITY, f64::max) + 0.15;
    let x = Axis {
        name: "threads".to_owned(),
        from: at(fewest) - 0.2,
        to: at(most) + 0.2,
        ticks: ticks(&threads)
            .into_iter()
            .map(|n| (at(n), n.to_string()))
            .collect(),
    };
    let y = Axis {
        name: values.axis().to_owned(),
        from: low,
        to: high,
        ticks: scale::of_logarithms(low, high),
    };
    let svg = draw_on(title, (&x, &y), &variants, |canvas| {
        if let Some(linear) = linear {
            canvas.mark(linear, "linear")?;
        }
        for (cpus, word) in marks(machine) {
            if cpus >= fewest && cpus <= most {
                canvas.mark([(at(cpus), low), (at(cpus), high)], &word)?;
            }
        }
        for (number, variant) in variants.iter().enumerate() {
            let mut own: Vec<&&PointResult> = points
                .iter()
                .filter(|point| point.variant == *variant)
                .collect();
            own.sort_by_key(|point| point.threads);
            let band: Vec<_> = own
                .iter()
                .map(|point| {
                    let wall = &point.wall;
                    (at(point.threads), of(point, wall.min), of(point, wall.max))
                })
                .collect();
            canvas.band(number, &band)?;
            let line: Vec<_> = own
                .iter()
                .map(|point| (at(point.threads), of(point, point.wall.median)))
                .collect();
            canvas.series(number, &line)?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// Those of the numbers that there is room to write.
fn ticks(threads: &BTreeSet<usize>) -> Vec<usize> {
    const MOST: usize = 16;
    let step = threads.len().div_ceil(MOST).max(1);
    threads.iter().copied().step_by(step).collect()
}

/// Where cores and CPUs end.
fn marks(machine: &Machine) -> Vec<(usize, String)> {
    let allowed = machine.cpus_allowed.as_deref();
    let Some(cpus) = allowed.and_then(count_cpu_list) else {
        return Vec::new();
    };
    let s = if cpus == 1 { "" } else { "s" };
    let mut marks = vec![(cpus, format!("{cpus} CPU{s}"))];
    if let Some(per_core) = machine.threads_per_core.filter(|per_core| *per_core > 1) {
        let cores = cpus / per_core;
        let s = if cores == 1 { "" } else { "s" };
        marks.push((cores, format!("{cores} core{s}")));
    }
    marks
}
