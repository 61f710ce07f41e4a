//! How the samples of points are distributed.

use countersink_harness::result::PointResult;

use super::canvas::{Axis, Svg, draw_with, shorten};
use super::scale;

/// Piles beside each other.
const PILES: usize = 100;
/// The height of a row.
const ROW: u32 = 34;
/// What a pile has room for.
const HIGHEST: usize = 7;
/// Samples that are further from the median are drawn at the edge.
const FARTHEST: [f64; 2] = [0.5, 2.0];
/// The least that the scale spans.
const LEAST: [f64; 2] = [0.97, 1.03];

/// Samples over their median.
pub(super) fn relative(point: &PointResult) -> impl Iterator<Item = f64> + Clone {
    let median = point.wall.median;
    let samples = point.samples.iter().map(move |sample| sample / median);
    samples.filter(|ratio| ratio.is_finite())
}

/// How many samples are in each of equal parts between two.
pub(super) fn piles(
    values: impl Iterator<Item = f64>,
    [from, to]: [f64; 2],
    parts: usize,
) -> Vec<usize> {
    let mut piles = vec![0; parts];
    for value in values {
        let part = (value - from) / (to - from) * parts as f64;
        // What lies outside is in the outermost.
        let part = (part.max(0.0) as usize).min(parts - 1);
        piles[part] += 1;
    }
    piles
}

/// Draws a row for each point.
pub(super) fn draw(title: &str, points: &[&PointResult]) -> anyhow::Result<Svg> {
    let all = points.iter().flat_map(|point| relative(point));
    let from = all.clone().fold(LEAST[0], f64::min).max(FARTHEST[0]);
    let to = all.fold(LEAST[1], f64::max).min(FARTHEST[1]);
    let edge = (to - from) / 50.0;
    let (from, to) = (from - edge, to + edge);
    let rows = points.len() as f64;
    let row_of = |number: usize| rows - 1.0 - number as f64;
    let x = Axis {
        name: "sample / median".to_owned(),
        from,
        to,
        ticks: scale::of_values(from, to),
    };
    let tick = |(number, point): (usize, &&PointResult)| {
        (row_of(number) + 0.2, shorten(&point.variant, 26))
    };
    let y = Axis {
        name: String::new(),
        from: 0.0,
        to: rows,
        ticks: points.iter().enumerate().map(tick).collect(),
    };
    let height = ROW * points.len() as u32;
    draw_with((title, height), (&x, &y), &[], |canvas| {
        canvas.mark([(1.0, 0.0), (1.0, rows)], "")?;
        for (number, point) in points.iter().enumerate() {
            let piles = piles(relative(point), [from, to], PILES);
            // Where the highest would not have room, a disc stands for several.
            let per_disc = piles
                .iter()
                .max()
                .map_or(1, |most| most.div_ceil(HIGHEST))
                .max(1);
            for (part, count) in piles.iter().enumerate() {
                let at = from + (part as f64 + 0.5) / PILES as f64 * (to - from);
                canvas.pile(number, (at, row_of(number) + 0.2), count.div_ceil(per_disc))?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_humps_are_two_piles() {
        let samples = [1.0, 1.0, 1.01, 1.3, 1.31, 1.3, 9.0];
        let found = piles(samples.into_iter(), [0.9, 1.4], 10);
        assert_eq!(found, [0, 0, 3, 0, 0, 0, 0, 0, 3, 1]);
    }
}
