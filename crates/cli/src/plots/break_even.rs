//! From where on looking before setting pays.

use super::canvas::{Axis, Svg, draw as draw_on};
use super::scale;
use crate::tables::check_before_set::Curve;

/// Ratios beyond this are drawn at the edge.
const HIGHEST: f64 = 1e4;

/// Draws the ratios by the share of what is set already.
///
/// # Errors
/// If it cannot be drawn.
pub(crate) fn draw(curves: &[Curve]) -> anyhow::Result<Svg> {
    let ratios = curves
        .iter()
        .flat_map(|curve| curve.sweep.iter().map(|at| at.ratio));
    let highest = ratios
        .filter(|ratio| ratio.is_finite())
        .fold(1.0, f64::max)
        .min(HIGHEST)
        * 1.1;
    let x = Axis {
        name: "cache lines in which everything is set already, %".to_owned(),
        from: 0.0,
        to: 100.0,
        ticks: scale::of_values(0.0, 100.0),
    };
    let y = Axis {
        name: "checked / plain".to_owned(),
        from: 0.0,
        to: highest,
        ticks: scale::of_values(0.0, highest),
    };
    let legend: Vec<String> = curves.iter().map(|curve| curve.name.clone()).collect();
    draw_on(
        "Look before setting: time with / without",
        (&x, &y),
        &legend,
        |canvas| {
            canvas.mark([(0.0, 1.0), (100.0, 1.0)], "")?;
            for (number, curve) in curves.iter().enumerate() {
                let inside = |value: f64| value.clamp(0.0, highest);
                let known = curve
                    .sweep
                    .iter()
                    .filter(|at| at.ratio.is_finite() && at.share <= 100);
                let band: Vec<_> = known
                    .clone()
                    .filter(|at| at.ci95.iter().all(|end| end.is_finite()))
                    .map(|at| (f64::from(at.share), inside(at.ci95[0]), inside(at.ci95[1])))
                    .collect();
                canvas.band(number, &band)?;
                let line: Vec<_> = known
                    .map(|at| (f64::from(at.share), inside(at.ratio)))
                    .collect();
                canvas.series(number, &line)?;
            }
            Ok(())
        },
    )
}
