//! Pictures of results.
//!
//! What is drawn of an experiment: for each operation and pattern, rates by threads, if several numbers of threads were measured; for each point,
//! how its samples are distributed; and where looking before setting breaks even.

mod break_even;
mod canvas;
mod scale;
mod spread;
mod terminal;
mod threads;

use countersink_experiments::check_before_set as cbs;
use countersink_harness::machine::Machine;
use countersink_harness::result::{ExperimentResult, PointResult, Results};

pub(crate) use break_even::draw as break_even;
pub(crate) use canvas::Svg;
pub(crate) use terminal::render as render_terminal;
pub(crate) use threads::Values;

/// A picture, and what is to be seen in it.
#[derive(Debug)]
pub(crate) struct Picture {
    /// The experiment that it is of, by its place in the results.
    pub(crate) experiment: usize,
    /// What a file of it is called, without what follows the dot.
    pub(crate) name: String,
    pub(crate) caption: String,
    pub(crate) svg: Svg,
}

/// Points of one operation and pattern.
struct Group<'a> {
    op: &'a str,
    pattern: &'a str,
    points: Vec<&'a PointResult>,
}

fn groups(measured: &ExperimentResult) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for point in measured.points.iter().filter(|point| is_drawable(point)) {
        let is_its =
            |group: &&mut Group<'_>| group.op == point.op && group.pattern == point.pattern;
        match groups.iter_mut().find(is_its) {
            Some(group) => group.points.push(point),
            None => groups.push(Group {
                op: &point.op,
                pattern: &point.pattern,
                points: vec![point],
            }),
        }
    }
    groups
}

/// Whether its numbers have a place on a scale of logarithms.
fn is_drawable(point: &PointResult) -> bool {
    let wall = &point.wall;
    let all = [wall.min, wall.median, wall.max, point.threads as f64];
    all.iter()
        .all(|value| value.is_finite() && *value >= 1e-9 && *value <= 1e15)
}

/// All pictures of these results.
///
/// # Errors
/// If one cannot be drawn.
pub(crate) fn all(results: &Results, values: Values) -> anyhow::Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for (at, measured) in results.experiments.iter().enumerate() {
        let mut drawn = of_experiment(&results.machine, measured, values)?;
        for picture in &mut drawn {
            picture.experiment = at;
        }
        pictures.extend(drawn);
    }
    name_apart(&mut pictures);
    Ok(pictures)
}

fn of_experiment(
    machine: &Machine,
    measured: &ExperimentResult,
    values: Values,
) -> anyhow::Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    let mut add = |parts: &[&str], caption: String, svg| {
        pictures.push(Picture {
            experiment: 0,
            name: file_name(parts),
            caption,
            svg,
        });
    };
    let name = measured.name.as_str();
    if name == cbs::NAME {
        let curves = crate::tables::check_before_set::curves(&cbs::Measured::of(measured.clone()));
        if !curves.is_empty() {
            let caption = "The time with a look before each store over the time without, by the share of cache lines in which everything is set \
                           already: below 1 the look pays.";
            add(
                &[name, "break-even"],
                caption.to_owned(),
                break_even(&curves)?,
            );
        }
    }
    for group in groups(measured) {
        let title = format!("{name}: {}, {}", group.op, group.pattern);
        if let Some(svg) = threads::draw(&title, machine, &group.points, values)? {
            let caption = format!(
                "{}, by the number of threads, both in powers: medians, and from the lowest to the highest sample. {}",
                values.name(),
                values.linear()
            );
            add(
                &[name, group.op, group.pattern, values.word()],
                caption,
                svg,
            );
        }
        // A sweep is a curve.
        if name == cbs::NAME && group.pattern.ends_with(" % stay") {
            continue;
        }
        for (threads, points) in by_threads(&group.points) {
            let s = if threads == 1 { "" } else { "s" };
            let title = format!("{title}, {threads} thread{s}");
            let svg = spread::draw(&title, &points)?;
            let caption = "Each sample over the median of its variant, a disc for each; line: the median. Two piles are two \
                           states, of which no mean tells."
                .to_owned();
            let threads = format!("{threads}-thread{s}");
            add(
                &[name, group.op, group.pattern, &threads, "samples"],
                caption,
                svg,
            );
        }
    }
    Ok(pictures)
}

fn by_threads<'a>(points: &[&'a PointResult]) -> Vec<(usize, Vec<&'a PointResult>)> {
    let mut all: std::collections::BTreeMap<usize, Vec<&PointResult>> = Default::default();
    for point in points {
        all.entry(point.threads).or_default().push(point);
    }
    all.into_iter().collect()
}

/// What any file system takes, and no path leads out of.
fn file_name(parts: &[&str]) -> String {
    let words = parts.iter().flat_map(|part| {
        part.split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
    });
    let name = words.collect::<Vec<_>>().join("-");
    name.chars().take(100).collect()
}

/// Names that were alike get a number.
fn name_apart(pictures: &mut [Picture]) {
    let mut seen = std::collections::BTreeSet::new();
    for picture in pictures {
        let first = picture.name.clone();
        let mut number = 1;
        while !seen.insert(picture.name.clone()) {
            number += 1;
            picture.name = format!("{first}-{number}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let mut results = Results::new(Machine::default());
        let mut measured = ExperimentResult::new("some/../thing");
        for (variant, threads, around) in [
            ("one", 1, 10.0),
            ("one", 2, 5.0),
            ("two", 1, 1e300),
            ("two", 2, f64::NAN),
        ] {
            let samples = vec![around; 6];
            measured
                .points
                .extend(PointResult::of(variant, ("do", "a b", threads), samples));
        }
        results.experiments.push(measured);
        results
    }

    #[test]
    fn there_is_a_picture_by_threads_and_one_of_each_point() {
        let pictures = all(&results(), Values::Rate).expect("pictures");
        let names: Vec<&str> = pictures
            .iter()
            .map(|picture| picture.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "some-thing-do-a-b-rate",
                "some-thing-do-a-b-1-thread-samples",
                "some-thing-do-a-b-2-threads-samples"
            ]
        );
        let svg = pictures[0].svg.for_file();
        assert!(
            svg.contains("linear") && svg.contains("one") && !svg.contains("two"),
            "{svg}"
        );
    }

    #[test]
    fn names_are_told_apart() {
        let mut results = results();
        let again = results.experiments[0].clone();
        results.experiments.push(again);
        let pictures = all(&results, Values::Rate).expect("pictures");
        let names: std::collections::BTreeSet<_> =
            pictures.iter().map(|picture| &picture.name).collect();
        assert_eq!(names.len(), 6);
        assert!(
            names.contains(&"some-thing-do-a-b-rate-2".to_owned()),
            "{names:?}"
        );
    }
}
