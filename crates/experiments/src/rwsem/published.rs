//! What the seed measured: `down_read_trylock` with a load of 10 in the lock, in kops/s, before the series (the word is loaded first) and
//! after it (ownership is tried for first).

use super::{Op, Work};

/// The operation of the published table.
pub const OP: Op = Op::TryRead;
/// Its work.
pub const WORK: Work = Work { load: 10, gap: 0 };
/// Its thread counts.
pub const THREADS: [usize; 4] = [1, 2, 4, 8];

/// A machine of the mails.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// What is said of it.
    pub name: &'static str,
    /// kops/s before and after, at each of [`THREADS`].
    pub rates: [[f64; 2]; 4],
}

/// Both machines.
pub const MACHINES: [Machine; 2] = [
    Machine {
        name: "x86-64, 2019",
        rates: [
            [14_496.0, 14_716.0],
            [8_644.0, 8_453.0],
            [6_799.0, 6_983.0],
            [5_664.0, 7_190.0],
        ],
    },
    Machine {
        name: "ARM64, 2019",
        rates: [
            [23_676.0, 24_488.0],
            [7_697.0, 9_502.0],
            [4_945.0, 3_440.0],
            [2_641.0, 1_603.0],
        ],
    },
];
