//! The seed's own table, and what it says about this machine.

use countersink_harness::result::PointResult;

use super::COLUMNS;

/// One machine of the seed.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// As the seed names it.
    pub machine: &'static str,
    /// ns per iteration: a row for each of [`WAYS`], a column for each of [`COLUMNS`]. `None` where
    /// the seed kept no result. Figures in brackets, with `CONFIG_PREEMPT`, are left out.
    pub rows: [[Option<u32>; COLUMNS.len()]; WAYS.len()],
}

/// The seed's ways in the order of its rows: its name, and the variants here that stand for it.
pub const WAYS: [(&str, &[&str]); 4] = [
    ("atomic_long", &["atomic"]),
    ("irqsave/rest", &["deferred", "sigmask"]),
    ("trivalue", &["trivalue"]),
    ("local_t", &["local"]),
];

/// The row to which the others are compared.
const LOCAL: usize = 3;

const fn row(values: [u32; 5]) -> [Option<u32>; 5] {
    let [a, b, c, d, e] = values;
    [Some(a), Some(b), Some(c), Some(d), Some(e)]
}

/// A row whose add_return was lost.
const fn row_without_return(values: [u32; 4]) -> [Option<u32>; 5] {
    let [a, b, d, e] = values;
    [Some(a), Some(b), None, Some(d), Some(e)]
}

/// The table of 16 December 2008.
///
/// The UltraSPARC's first inc, 243, is called wrong in the thread; it is kept as published.
pub const PUBLISHED: [Published; 5] = [
    Published {
        machine: "x86-32, 2.13 GHz Core Duo 2",
        rows: [
            row([118, 118, 115, 17, 17]),
            row([77, 78, 77, 23, 16]),
            row([45, 45, 127, 3, 21]),
            row([36, 36, 36, 1, 17]),
        ],
    },
    Published {
        machine: "x86-64, 2.6 GHz Dual-Core Opteron 2218",
        rows: [
            row_without_return([55, 60, 6, 19]),
            row_without_return([54, 54, 11, 19]),
            row_without_return([47, 47, 5, 28]),
            row_without_return([47, 46, 1, 19]),
        ],
    },
    Published {
        machine: "PPC64, 2.7 GHz PPC970MP [normalized]",
        rows: [
            row([18, 18, 20, 3, 8]),
            row([10, 5, 4, 8, 10]),
            row([9, 9, 2, 1, 10]),
            row([18, 18, 18, 3, 8]),
        ],
    },
    Published {
        machine: "Sparc64, UltraSPARC-IIIi",
        rows: [
            row_without_return([243, 222, 37, 169]),
            row_without_return([205, 205, 25, 169]),
            row_without_return([193, 193, 11, 221]),
            row_without_return([221, 221, 37, 169]),
        ],
    },
    Published {
        machine: "Sparc64, Niagara-2",
        rows: [
            row_without_return([207, 206, 72, 160]),
            row_without_return([228, 228, 78, 160]),
            row_without_return([172, 172, 20, 222]),
            row_without_return([206, 207, 73, 160]),
        ],
    },
];

/// A table as ratios to local_t: for each row and column.
pub type Ratios = [[Option<f64>; COLUMNS.len()]; WAYS.len()];

impl Published {
    /// The machine's figures divided by those of local_t.
    pub fn ratios(&self) -> Ratios {
        self.rows.map(|row| {
            std::array::from_fn(|column| {
                let local = self.rows[LOCAL][column]?;
                Some(f64::from(row[column]?) / f64::from(local))
            })
        })
    }
}

/// This machine's medians divided by that of local, irqsave being the variant named.
pub fn our_ratios(points: &[PointResult], irqsave: &str) -> Ratios {
    std::array::from_fn(|way| {
        std::array::from_fn(|column| {
            let ours = find(points, variant(way, irqsave), column)?;
            let local = find(points, variant(LOCAL, irqsave), column)?;
            Some(ours.wall.median / local.wall.median)
        })
    })
}

/// Whether a published ordering holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same way is the faster one.
    Held,
    /// The other one is.
    Reversed,
    /// The 95 % intervals of the medians overlap, or there is none.
    CannotTell,
}

impl Verdict {
    /// Whether one variant is faster than another in a column here.
    pub fn of(points: &[PointResult], column: usize, faster: &str, slower: &str) -> Verdict {
        let interval = |variant| find(points, variant, column)?.wall.ci95;
        match (interval(faster), interval(slower)) {
            (Some([_, high]), Some([low, _])) if high < low => Verdict::Held,
            (Some([low, _]), Some([_, high])) if low > high => Verdict::Reversed,
            _ => Verdict::CannotTell,
        }
    }
}

/// Two ways in one column of one published machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordering {
    /// The column, in [`COLUMNS`].
    pub column: usize,
    /// The way that was faster, in [`WAYS`].
    pub faster: usize,
    /// The way that was slower.
    pub slower: usize,
    /// What this machine says.
    pub verdict: Verdict,
}

/// Every ordering that a machine's figures show, with what this machine says, irqsave being the
/// variant named. Equal figures are no ordering.
pub fn orderings(published: &Published, points: &[PointResult], irqsave: &str) -> Vec<Ordering> {
    let mut found = Vec::new();
    for column in 0..COLUMNS.len() {
        for faster in 0..WAYS.len() {
            for slower in 0..WAYS.len() {
                let figures = (
                    published.rows[faster][column],
                    published.rows[slower][column],
                );
                if let (Some(low), Some(high)) = figures
                    && low < high
                {
                    let [fast, slow] = [faster, slower].map(|way| variant(way, irqsave));
                    let verdict = Verdict::of(points, column, fast, slow);
                    found.push(Ordering {
                        column,
                        faster,
                        slower,
                        verdict,
                    });
                }
            }
        }
    }
    found
}

/// The variant that stands for a way.
fn variant(way: usize, irqsave: &str) -> &str {
    let (_, variants) = WAYS[way];
    variants
        .iter()
        .copied()
        .find(|name| *name == irqsave)
        .unwrap_or(variants[0])
}

/// The timed result of a variant in a column of the first table.
pub fn find<'a>(
    points: &'a [PointResult],
    variant: &str,
    column: usize,
) -> Option<&'a PointResult> {
    let (op, pattern) = COLUMNS[column];
    points.iter().find(|point| {
        point.variant == variant
            && point.op == op
            && point.pattern == pattern
            && point.iterations.is_none()
    })
}
