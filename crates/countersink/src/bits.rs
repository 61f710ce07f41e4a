//! The number of the highest bit, fast.
//!
//! What every x86-64 CPU has for it is slow on many: `bsr` is eight operations on AMD's up to Zen 4, and
//! would be half of what recording a value costs. Nearly all have `lzcnt`, which is one.
#![allow(unsafe_code)]

/// The number of the highest bit that is set; of 0, any number.
#[inline(always)]
pub(crate) fn highest(value: u64) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(target_feature = "lzcnt")))]
    if std::arch::is_x86_feature_detected!("lzcnt") {
        let zeros: u64;
        // SAFETY: the CPU has it; an instruction on registers.
        unsafe {
            core::arch::asm!(
                "lzcnt {}, {}",
                out(reg) zeros,
                in(reg) value,
                options(pure, nomem, nostack),
            );
        }
        return (zeros as u32) ^ 63;
    }
    value.leading_zeros() ^ 63
}

#[cfg(test)]
mod tests {
    use super::highest;

    #[test]
    fn both_ways_agree() {
        for bit in 0..64 {
            for value in [1 << bit, u64::MAX >> (63 - bit)] {
                assert_eq!(highest(value), bit);
                assert_eq!(value.ilog2(), bit);
            }
        }
    }
}
