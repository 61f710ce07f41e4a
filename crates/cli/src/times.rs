//! Moments and repetitions in words.

use std::time::Duration;

/// A moment since 1970 as date and time.
pub(crate) fn utc(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The date of a day since 1970, by counting from 1 March, so that the leap day is a year's last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next, month, of_month)
}

/// `once`, `twice`, `3 times`.
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_175_983_573, "2007-04-07 22:06:13 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(Duration::from_secs(seconds)), text);
        }
        // What a hostile region may say.
        assert!(utc(Duration::from_nanos(u64::MAX)).starts_with("2554-"));
        utc(Duration::MAX);
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut before = civil(0);
        for day in 1..200_000 {
            let now = civil(day);
            let next = (before.0, before.1, before.2 + 1);
            let month = (before.0, before.1 + 1, 1);
            assert!(
                now == next || now == month || now == (before.0 + 1, 1, 1),
                "{now:?}"
            );
            before = now;
        }
    }
}
