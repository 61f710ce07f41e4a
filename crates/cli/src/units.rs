//! Numbers with units, for people.
//!
//! The tables are those of the simple performance counters of 2007: one decimal, and none if it is zero.
//! A value is shown in the smallest unit in which it still is below the unit's limit *after* rounding, so
//! 999.95 us is `1ms`. The last unit has no limit.

/// A unit, and how many of them make one of the next.
pub(crate) type Unit = (u32, &'static str);

/// Plain numbers.
pub(crate) const EVENTS: &[Unit] = &[
    (1000, ""),
    (1000, "K"),
    (1000, "M"),
    (1000, "G"),
    (1000, "T"),
    (1000, "P"),
    (1000, "XX"),
];

/// Nanoseconds.
pub(crate) const TIME: &[Unit] = &[
    (1000, "ns"),
    (1000, "us"),
    (1000, "ms"),
    (60, "s"),
    (60, "m"),
    (24, "h"),
    (365, "d"),
    (1000, "y"),
];

/// Bytes.
pub(crate) const BYTES: &[Unit] = &[
    (1000, "b"),
    (1000, "kb"),
    (1000, "mb"),
    (1000, "gb"),
    (1000, "tb"),
    (1000, "pb"),
    (1000, "xb"),
];

/// The table of a metric's unit.
pub(crate) fn of(unit: &str) -> &'static [Unit] {
    match unit {
        "bytes" => BYTES,
        "nanoseconds" => TIME,
        _ => EVENTS,
    }
}

/// A value in the table's first unit, scaled and rounded to one decimal.
pub(crate) fn scaled(value: impl Into<u128>, units: &[Unit]) -> String {
    let value = value.into();
    let mut size = 1_u128;
    for (at, (limit, name)) in units.iter().enumerate() {
        let (mut whole, rest) = (value / size, value % size);
        // Halves go up. `rest` is less than the last unit, so nothing overflows.
        let mut tenths = (rest * 20 + size) / (2 * size);
        if tenths == 10 {
            (whole, tenths) = (whole + 1, 0);
        }
        if whole < u128::from(*limit) || at + 1 == units.len() {
            return match tenths {
                0 => format!("{whole}{name}"),
                _ => format!("{whole}.{tenths}{name}"),
            };
        }
        size *= u128::from(*limit);
    }
    value.to_string()
}

/// The average, rounded; 0 of nothing.
pub(crate) fn average(sum: u64, count: u64) -> u64 {
    let (sum, count) = (u128::from(sum), u128::from(count));
    match count {
        0 => 0,
        // No average is larger than the sum.
        _ => ((sum + count / 2) / count) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000 * US;
    const S: u64 = 1_000 * MS;
    const M: u64 = 60 * S;
    const H: u64 = 60 * M;
    const D: u64 = 24 * H;
    const Y: u64 = 365 * D;

    #[test]
    fn times_carry_into_the_next_unit() {
        for (value, text) in [
            (0, "0ns"),
            (1, "1ns"),
            (999, "999ns"),
            (1_000, "1us"),
            (1_049, "1us"),
            (1_050, "1.1us"),
            (999_949, "999.9us"),
            (999_950, "1ms"),
            (999_999, "1ms"),
            (MS, "1ms"),
            (999_949_999, "999.9ms"),
            (999_950_000, "1s"),
            (S, "1s"),
            (59 * S + 949_999_999, "59.9s"),
            (59 * S + 950 * MS, "1m"),
            (M, "1m"),
            (59 * M + 57 * S - 1, "59.9m"),
            (59 * M + 57 * S, "1h"),
            (H, "1h"),
            (23 * H + 57 * M - 1, "23.9h"),
            (23 * H + 57 * M, "1d"),
            // Through all units from nanoseconds up.
            (D - 1, "1d"),
            (D, "1d"),
            // 1.5 h are 0.0625 d; truncated to hours before rounding they would be lost.
            (D + 90 * M, "1.1d"),
            (364 * D + 1368 * M - 1, "364.9d"),
            (364 * D + 1368 * M, "1y"),
            (Y - 1, "1y"),
            (Y, "1y"),
            (u64::MAX, "584.9y"),
        ] {
            assert_eq!(scaled(value, TIME), text, "{value}");
        }
    }

    #[test]
    fn the_published_lines_come_out() {
        let values = [5_600_000, 10_500_000, 28_700, 322, 18];
        let texts = values.map(|value: u64| scaled(value, TIME));
        assert_eq!(texts, ["5.6ms", "10.5ms", "28.7us", "322ns", "18ns"]);
    }

    /// Both sides of every boundary: the limit, and half a tenth below it, where the rounding carries.
    #[test]
    fn every_boundary_of_every_table() {
        for units in [EVENTS, TIME, BYTES] {
            let mut size = 1_u128;
            for pair in units.windows(2) {
                let ((limit, name), (_, next)) = (pair[0], pair[1]);
                let boundary = size * u128::from(limit);
                let last = limit - 1;
                assert_eq!(scaled(boundary, units), format!("1{next}"));
                assert_eq!(
                    scaled(size * u128::from(last), units),
                    format!("{last}{name}")
                );
                let carry = boundary - size / 20;
                if size == 1 {
                    assert_eq!(scaled(boundary - 1, units), format!("{last}{name}"));
                } else {
                    assert_eq!(scaled(boundary - 1, units), format!("1{next}"));
                    assert_eq!(scaled(carry, units), format!("1{next}"));
                    assert_eq!(scaled(carry - 1, units), format!("{last}.9{name}"));
                    assert_eq!(scaled(size + size / 20 - 1, units), format!("1{name}"));
                    assert_eq!(scaled(size + size / 20, units), format!("1.1{name}"));
                }
                size = boundary;
            }
        }
    }

    #[test]
    fn the_last_unit_holds_anything() {
        assert_eq!(scaled(u64::MAX, EVENTS), "18.4XX");
        assert_eq!(scaled(u64::MAX, BYTES), "18.4xb");
        assert_eq!(scaled(999_949_999_999_999_999_u64, EVENTS), "999.9P");
        assert_eq!(scaled(999_950_000_000_000_000_u64, EVENTS), "1XX");
        let beyond = 5_000_u128 * 1_000_000_000_000_000_000;
        assert_eq!(scaled(beyond, EVENTS), "5000XX");
        assert_eq!(scaled(u128::from(Y) * 12_345, TIME), "12345y");
        for units in [EVENTS, TIME, BYTES] {
            let (_, name) = units[units.len() - 1];
            assert!(scaled(u128::MAX, units).ends_with(name));
        }
    }

    /// As the seed's own arithmetic, but in tenths of the exact value.
    #[test]
    fn it_is_the_nearest_tenth() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..100_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let value = state >> (state % 64);
            let text = scaled(value, BYTES);
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let name = &text[digits.len()..];
            let power = BYTES
                .iter()
                .position(|unit| unit.1 == name)
                .expect("a unit");
            let size = 1000_u128.pow(power as u32);
            let (whole, tenth) = digits.split_once('.').unwrap_or((digits, "0"));
            let tenths: u128 = format!("{whole}{tenth}").parse().expect("a number");
            let twice = 20 * u128::from(value);
            assert!(twice < (2 * tenths + 1) * size, "{value} {text}");
            assert!(twice + size >= 2 * tenths * size, "{value} {text}");
            assert!(
                power + 1 == BYTES.len() || tenths < 10_000,
                "{value} {text}"
            );
        }
    }

    #[test]
    fn averages_are_rounded_and_never_overflow() {
        assert_eq!(average(10, 0), 0);
        assert_eq!(average(0, 5), 0);
        assert_eq!(average(5, 2), 3);
        assert_eq!(average(4, 3), 1);
        assert_eq!(average(5, 3), 2);
        assert_eq!(average(u64::MAX, 1), u64::MAX);
        assert_eq!(average(u64::MAX, u64::MAX), 1);
        assert_eq!(average(u64::MAX, 2), 1 << 63);
        assert_eq!(average(u64::MAX / 2, u64::MAX), 0);
        // The published averages: 5.6 ms over 598,430 and 10.5 ms over 596,360.
        assert_eq!(average(5_600_000, 598_430), 9);
        assert_eq!(average(10_500_000, 596_360), 18);
    }
}
