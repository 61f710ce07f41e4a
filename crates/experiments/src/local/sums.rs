//! The sums: printed, as the seed prints them, and checked, as it does not.

use std::sync::Mutex;

/// What the counters of a variant had in the end: as much as its operations make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The variant.
    pub variant: String,
    /// The point's label.
    pub column: String,
    /// All operations, warm-up included.
    pub operations: u64,
    /// The sum over all counters.
    pub value: i64,
}

/// Compares a sum with the operations that made it, and keeps it.
pub(super) fn check_sum(
    sums: &Mutex<Vec<Sum>>,
    variant: &str,
    column: &str,
    effect: i64,
    operations: &[u64],
    found: i64,
) -> Result<(), String> {
    let operations: u64 = operations.iter().sum();
    let expected = effect.wrapping_mul(operations as i64);
    if found != expected {
        return Err(format!(
            "{operations} operations make {expected}, the counters have {found}"
        ));
    }
    let sum = Sum {
        variant: variant.to_owned(),
        column: column.to_owned(),
        operations,
        value: found,
    };
    sums.lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .push(sum);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_operation_is_found_and_said() {
        let sums = Mutex::default();
        assert!(check_sum(&sums, "way", "inc", 7, &[2, 3], 35).is_ok());
        let error = check_sum(&sums, "way", "inc", 7, &[2, 3], 28).expect_err("a lost operation");
        assert_eq!(error, "5 operations make 35, the counters have 28");
        assert_eq!(sums.lock().expect("no panic").len(), 1);
    }
}
