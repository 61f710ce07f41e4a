//! The seed's own figures, and what of them holds here.

use countersink_harness::stats::Ratio;

use super::readings::{Figure, Reading};

/// A line that the seed quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// As the seed names the kernel.
    pub kernel: &'static str,
    /// The variant here that stands for it.
    pub variant: &'static str,
    /// As printed: events, total (min/avg/max).
    pub line: &'static str,
    /// The shortest time, in ns.
    pub min: u32,
    /// The average.
    pub average: u32,
    /// The longest time.
    pub max: u32,
}

/// kfree's look-ups while x86-64 booted, 7 April 2007.
pub const PUBLISHED: [Published; 2] = [
    Published {
        kernel: "virtual memmap",
        variant: "virtual-memmap",
        line: "598430 5.6ms(3ns/9ns/322ns)",
        min: 3,
        average: 9,
        max: 322,
    },
    Published {
        kernel: "regular sparsemem",
        variant: "sparsemem",
        line: "596360 10.5ms(4ns/18ns/28.7us)",
        min: 4,
        average: 18,
        max: 28_700,
    },
];

impl Published {
    /// One of the three figures, in ns; nobody trimmed the average.
    pub fn figure(&self, figure: Figure) -> f64 {
        f64::from(match figure {
            Figure::Min => self.min,
            Figure::Average | Figure::Trimmed => self.average,
            Figure::Max => self.max,
        })
    }
}

/// A published figure of sparsemem divided by that of the virtual memmap.
pub fn published_ratio(figure: Figure) -> f64 {
    let [memmap, sparsemem] = PUBLISHED;
    sparsemem.figure(figure) / memmap.figure(figure)
}

/// Whether what was published holds here: in all three figures, sparsemem takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes longer here too.
    Held,
    /// It is faster.
    Reversed,
    /// The 95 % interval has 1 in it, or there is none.
    CannotTell,
}

impl Verdict {
    /// What a ratio of sparsemem to the virtual memmap says.
    pub fn of(ratio: Option<&Ratio>) -> Verdict {
        match ratio.and_then(|ratio| ratio.ci95) {
            Some([low, _]) if low > 1.0 => Verdict::Held,
            Some([_, high]) if high < 1.0 => Verdict::Reversed,
            _ => Verdict::CannotTell,
        }
    }
}

/// A figure of sparsemem divided by that of the virtual memmap, and what it says.
pub fn compare(memmap: &Reading, sparsemem: &Reading, figure: Figure) -> (Option<Ratio>, Verdict) {
    let ratio = sparsemem.ratio_to(memmap, figure);
    (ratio, Verdict::of(ratio.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_ratios_by_hand() {
        assert_eq!(published_ratio(Figure::Average), 2.0);
        assert_eq!(published_ratio(Figure::Min), 4.0 / 3.0);
        assert!((published_ratio(Figure::Max) - 89.13).abs() < 0.01);
    }

    #[test]
    fn an_interval_with_one_in_it_says_nothing() {
        let ratio = |low, high| Ratio {
            of_medians: 1.0,
            ci95: Some([low, high]),
            p: None,
            rounds: 6,
        };
        for (low, high, verdict) in [
            (1.1, 1.2, Verdict::Held),
            (0.8, 0.9, Verdict::Reversed),
            (0.9, 1.1, Verdict::CannotTell),
            (1.0, 1.1, Verdict::CannotTell),
        ] {
            assert_eq!(Verdict::of(Some(&ratio(low, high))), verdict);
        }
        assert_eq!(Verdict::of(None), Verdict::CannotTell);
    }
}
