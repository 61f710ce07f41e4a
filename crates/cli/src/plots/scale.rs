//! Ticks at round numbers.

use super::canvas::Tick;

/// At most so many labels of an axis.
const MOST: usize = 9;

/// Round numbers between two, on a scale of logarithms to the base of 10: 1, 2 and 5 of each power if there is room, or the powers, or some of
/// them.
pub(super) fn of_logarithms(from: f64, to: f64) -> Vec<Tick> {
    let first = from.floor() as i32;
    let last = to.ceil() as i32;
    for digits in [&[1.0_f64, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let all = (first..=last).flat_map(|power| digits.iter().map(move |digit| (power, *digit)));
        let ticks: Vec<Tick> = all
            .map(|(power, digit)| {
                (
                    f64::from(power) + digit.log10(),
                    label(digit * 10f64.powi(power)),
                )
            })
            .filter(|(at, _)| *at >= from && *at <= to)
            .collect();
        if ticks.len() <= MOST {
            return ticks;
        }
    }
    let step = (last - first).max(1) as usize / MOST + 1;
    (first..=last)
        .step_by(step)
        .map(|power| (f64::from(power), label(10f64.powi(power))))
        .filter(|(at, _)| *at >= from && *at <= to)
        .collect()
}

/// Round numbers between two.
pub(super) fn of_values(from: f64, to: f64) -> Vec<Tick> {
    let rough = (to - from) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = (from / step).ceil() as i64;
    let last = (to / step).floor() as i64;
    (first..=last)
        .take(2 * MOST)
        .map(|at| (at as f64 * step, label(at as f64 * step)))
        .collect()
}

/// As short as it is exact.
fn label(value: f64) -> String {
    let rounded = format!("{value:.9}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    match value {
        value if value >= 1e6 || (value < 1e-3 && value > 0.0) => format!("{value:.0e}"),
        _ => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(labels(&of_logarithms(-0.1, 1.1)), ["1", "2", "5", "10"]);
        assert_eq!(
            labels(&of_logarithms(0.0, 4.0)),
            ["1", "3", "10", "30", "100", "300", "1000", "3000", "10000"]
        );
        assert!(of_logarithms(-9.0, 15.0).len() <= MOST);
        assert_eq!(labels(&of_values(0.0, 3.1)), ["0", "1", "2", "3"]);
        assert_eq!(labels(&of_values(0.93, 1.08)), ["0.95", "1", "1.05"]);
        assert_eq!(label(2e7), "2e7");
    }
}
