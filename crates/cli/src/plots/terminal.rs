//! The same on a terminal, in letters.

use countersink_experiments::check_before_set as cbs;
use countersink_harness::result::{PointResult, Results};

use super::canvas::shorten;
use super::spread::{piles, relative};
use super::threads::Values;
use super::{by_threads, groups};
use crate::tables::check_before_set::{Curve, curves};
use crate::tables::figure;

/// Columns of a scale.
const WIDTH: usize = 48;
/// Columns of a distribution.
const PILES: usize = 12;
/// Lines of a curve.
const HEIGHT: usize = 14;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Every experiment.
pub(crate) fn render(results: &Results, values: Values) -> String {
    let mut text = String::new();
    for measured in &results.experiments {
        let name = shorten(&measured.name, 60);
        if measured.name == cbs::NAME {
            let curves = curves(&cbs::Measured::of(measured.clone()));
            if !curves.is_empty() {
                text += &break_even(&curves);
            }
        }
        for group in groups(measured) {
            if measured.name == cbs::NAME && group.pattern.ends_with(" % stay") {
                continue;
            }
            text += &format!(
                "\n{name}: {}, {}; {}\n",
                shorten(group.op, 60),
                shorten(group.pattern, 60),
                match values {
                    Values::Rate => "million operations/s",
                    Values::Time => "ns/op",
                }
            );
            text += &bars(&group.points, values);
        }
    }
    match text.is_empty() {
        true => "nothing to draw\n".to_owned(),
        false => format!(
            "Scales are of logarithms: from the lowest to the highest sample, and the median. Behind: the samples from the lowest to the highest\n{text}"
        ),
    }
}

/// A line for each point, on one scale.
fn bars(points: &[&PointResult], values: Values) -> String {
    let of = |point: &PointResult, ns: f64| values.of(point.threads, ns).log10();
    let ends = points
        .iter()
        .flat_map(|point| [of(point, point.wall.min), of(point, point.wall.max)]);
    let low = ends.clone().fold(f64::INFINITY, f64::min);
    let high = ends.fold(f64::NEG_INFINITY, f64::max);
    let column = |value: f64| {
        let part = (value - low) / (high - low).max(1e-9);
        ((part * (WIDTH - 1) as f64).round() as usize).min(WIDTH - 1)
    };
    let names: Vec<String> = points
        .iter()
        .map(|point| shorten(&point.variant, 24))
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (threads, points) in by_threads(points) {
        let s = if threads == 1 { "" } else { "s" };
        let more = match points.iter().any(|point| point.oversubscribed) {
            true => " (more than CPUs)",
            false => "",
        };
        text += &format!("  {threads} thread{s}{more}\n");
        for point in points {
            let wall = &point.wall;
            let [one, middle, other] =
                [wall.min, wall.median, wall.max].map(|ns| column(of(point, ns)));
            let (from, to) = (one.min(other), one.max(other));
            let cell = |at: usize| match at {
                at if at == middle => '●',
                at if at >= from && at <= to => '─',
                _ => ' ',
            };
            let line: String = (0..WIDTH).map(cell).collect();
            text += &format!(
                "    {:<width$} {:>9} |{line}| {}\n",
                shorten(&point.variant, 24),
                figure(values.of(threads, wall.median)),
                distribution(point)
            );
        }
    }
    text
}

/// How high the piles of samples are.
fn distribution(point: &PointResult) -> String {
    let low = relative(point).fold(f64::INFINITY, f64::min);
    let high = relative(point).fold(f64::NEG_INFINITY, f64::max);
    if !low.is_finite() || high <= low {
        return String::new();
    }
    let piles = piles(relative(point), [low, high], PILES);
    let most = piles.iter().copied().max().unwrap_or(1).max(1);
    let height = |count: &usize| match count {
        0 => ' ',
        count => HEIGHTS[(count * HEIGHTS.len()).div_ceil(most) - 1],
    };
    piles.iter().map(height).collect()
}

/// The curves in letters, the line at 1 between.
fn break_even(curves: &[Curve]) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    let ratios = curves
        .iter()
        .flat_map(|curve| curve.sweep.iter().map(|at| at.ratio));
    let highest = ratios
        .filter(|ratio| ratio.is_finite())
        .fold(1.0, f64::max)
        .min(1e4);
    let row = |ratio: f64| {
        let part = ratio.clamp(0.0, highest) / highest;
        HEIGHT - 1 - (part * (HEIGHT - 1) as f64).round() as usize
    };
    let mut cells = vec![vec![' '; WIDTH + 2]; HEIGHT];
    cells[row(1.0)].fill('-');
    for (number, curve) in curves.iter().enumerate() {
        for at in curve
            .sweep
            .iter()
            .filter(|at| at.ratio.is_finite() && at.share <= 100)
        {
            let column = at.share as usize * (WIDTH - 1) / 100;
            let line = &mut cells[row(at.ratio)];
            // Who comes later to a taken place stands beside.
            let free = (column..WIDTH + 2).find(|column| [' ', '-'].contains(&line[*column]));
            line[free.unwrap_or(column)] = letter(number);
        }
    }
    let mut text = "\nchecked / plain, by the share of cache lines in which everything is set already; below 1 the look pays\n".to_owned();
    for (number, line) in cells.iter().enumerate() {
        let value = highest * (HEIGHT - 1 - number) as f64 / (HEIGHT - 1) as f64;
        let label = match number {
            number if number == row(1.0) => "1.00".to_owned(),
            number if number % 4 == 1 => figure(value),
            _ => String::new(),
        };
        let line: String = line.iter().collect();
        text += &format!("  {label:>6} |{}\n", line.trim_end());
    }
    text += &format!("         0 %{:>width$}\n", "100 %", width = WIDTH - 4);
    for (number, curve) in curves.iter().enumerate() {
        text += &format!("  {}: {}\n", letter(number), shorten(&curve.name, 70));
    }
    text
}

#[cfg(test)]
mod tests {
    use countersink_harness::machine::Machine;
    use countersink_harness::result::ExperimentResult;

    use super::*;

    #[test]
    fn points_are_lines_on_one_scale() {
        let mut results = Results::new(Machine::default());
        let mut measured = ExperimentResult::new("some");
        for (variant, threads, samples) in [
            ("one", 1, vec![1.0; 6]),
            ("two", 1, vec![8.0, 8.0, 8.0, 10.0, 10.0, 10.0]),
            ("one", 2, vec![100.0; 6]),
        ] {
            measured
                .points
                .extend(PointResult::of(variant, ("do", "p", threads), samples));
        }
        results.experiments.push(measured);
        let text = render(&results, Values::Time);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let dots = |from: usize| " ".repeat(from);
        assert_eq!(lines[0], "some: do, p; ns/op");
        assert_eq!(lines[1], "  1 thread");
        assert_eq!(lines[2], format!("    one      1.00 |●{}| ", dots(47)));
        assert_eq!(
            lines[3],
            format!(
                "    two      9.00 |{}─●──{}| █          █",
                dots(21),
                dots(23)
            )
        );
        assert_eq!(lines[5], format!("    one       100 |{}●| ", dots(47)));
    }

    #[test]
    fn curves_are_letters() {
        use countersink_experiments::check_before_set::At;
        let at = |(share, ratio): (u32, f64)| At {
            share,
            ratio,
            ci95: [ratio, ratio],
        };
        let curve = Curve {
            name: "a writer".to_owned(),
            sweep: [(0, 2.0), (100, 0.0)].map(at).to_vec(),
        };
        let text = break_even(&[curve]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "         |a");
        let middle = lines.iter().find(|line| line.starts_with("    1.00 |---"));
        assert!(middle.is_some(), "{text}");
        let last = lines
            .iter()
            .position(|line| line.starts_with("         0 %"));
        let last = last.and_then(|at| lines.get(at - 1)).expect("a line");
        assert!(last.ends_with('a'), "{text}");
        assert_eq!(lines.last(), Some(&"  a: a writer"));
    }
}
