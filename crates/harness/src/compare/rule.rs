//! When a difference gets a star.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Moments;

/// A rule that says whether two means differ by more than chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Welch's t-test with Satterthwaite's degrees of freedom, two-sided, p < 0.05.
    Welch,
    /// mmtests' from 2018 to 2024: |m0 - m1| / sqrt(s0²/n0 + s1²/n1) by Student's t with n0 + n1 - 2 degrees of freedom, two-sided,
    /// p < 0.10; without any spread, any difference.
    Mmtests2018,
    /// mmtests' since November 2024: |m0 - m1| > 1.96 (s0 + s1), by the spread of the values, so it gets no easier with more of
    /// them.
    Mmtests2024,
}

impl Rule {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Welch => "welch",
            Rule::Mmtests2018 => "mmtests-2018",
            Rule::Mmtests2024 => "mmtests-2024",
        }
    }

    /// What it says, for the foot of a table.
    pub fn text(self) -> &'static str {
        match self {
            Rule::Welch => "Welch's t-test, two-sided, p < 0.05",
            Rule::Mmtests2018 => {
                "Student's t with n0 + n1 - 2 degrees of freedom over Welch's error, two-sided, p < 0.10, as mmtests from 2018 to 2024"
            }
            Rule::Mmtests2024 => {
                "a difference of more than 1.96 times the sum of the standard deviations, as mmtests since November 2024"
            }
        }
    }

    /// Whether two means differ; `None` for a mean of one value.
    pub fn tells_apart(self, one: &Moments, other: &Moments) -> Option<bool> {
        let (s0, s1) = (one.stddev?, other.stddev?);
        let (n0, n1) = (one.count as f64, other.count as f64);
        let difference = (one.mean - other.mean).abs();
        if self == Rule::Mmtests2024 {
            return Some(difference > 1.96 * (s0 + s1));
        }
        let (e0, e1) = (s0 * s0 / n0, s1 * s1 / n1);
        let error = (e0 + e1).sqrt();
        if error == 0.0 {
            return Some(difference > 0.0);
        }
        let (freedom, most) = match self {
            Rule::Mmtests2018 => (n0 + n1 - 2.0, 0.10),
            _ => {
                let parts = e0 * e0 / (n0 - 1.0) + e1 * e1 / (n1 - 1.0);
                ((e0 + e1).powi(2) / parts, 0.05)
            }
        };
        let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
        Some(2.0 * t.sf(difference / error) < most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Direction;

    fn moments(values: &[f64]) -> Moments {
        Moments::of(Direction::Less, values).expect("values")
    }

    /// 1, 2, 3 and 3, 4, 5: means 2 and 4, deviations 1; the error is sqrt(2/3), t is 2.449, with 4 degrees of freedom p is 0.0705.
    #[test]
    fn by_hand() {
        let (one, other) = (moments(&[1.0, 2.0, 3.0]), moments(&[3.0, 4.0, 5.0]));
        assert_eq!(Rule::Welch.tells_apart(&one, &other), Some(false));
        assert_eq!(Rule::Mmtests2018.tells_apart(&one, &other), Some(true));
        // 2 is not more than 1.96 x 2.
        assert_eq!(Rule::Mmtests2024.tells_apart(&one, &other), Some(false));
        let far = moments(&[6.0, 7.0, 8.0]);
        assert_eq!(Rule::Welch.tells_apart(&one, &far), Some(true));
        assert_eq!(Rule::Mmtests2024.tells_apart(&one, &far), Some(true));
    }

    /// Unequal spread: 10, 10.1, 9.9, 10 against 12, 8, 15, 13. Welch's freedom is hardly above 3: t is 1.36, p is 0.27.
    #[test]
    fn of_unequal_spread() {
        let (one, other) = (
            moments(&[10.0, 10.1, 9.9, 10.0]),
            moments(&[12.0, 8.0, 15.0, 13.0]),
        );
        assert_eq!(Rule::Welch.tells_apart(&one, &other), Some(false));
        assert_eq!(Rule::Mmtests2018.tells_apart(&one, &other), Some(false));
    }

    #[test]
    fn without_spread_any_difference_counts_and_one_value_says_nothing() {
        let (one, other) = (moments(&[1.0, 1.0]), moments(&[1.5, 1.5]));
        for rule in [Rule::Welch, Rule::Mmtests2018, Rule::Mmtests2024] {
            assert_eq!(rule.tells_apart(&one, &other), Some(true));
            assert_eq!(rule.tells_apart(&one, &one), Some(false));
            assert_eq!(rule.tells_apart(&one, &moments(&[2.0])), None);
        }
    }
}
