//! Architectures without sections here: every attempt finds no lane.
#![allow(unsafe_code)]

use super::{At, Attempt};

/// Where a thread's area would be.
pub(crate) fn own_area() -> i32 {
    0
}

/// Where a thread has an area that is never registered.
pub(crate) fn closed_area() -> i32 {
    0
}

/// The C library's area: of no use without sections.
pub(crate) fn libc_area() -> Option<(i32, u32)> {
    None
}

macro_rules! no_lane {
    ($($name:ident($($operand:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// One attempt, which finds no lane.
        ///
        /// # Safety
        /// None needed; the other architectures' functions have conditions.
        #[inline(always)]
        pub(crate) unsafe fn $name(_: At, $(_: $type),*) -> Attempt<$result> {
            Attempt::NoLane
        }
    )*};
}

no_lane! {
    inc() -> ();
    add(n: u64) -> ();
    add_release(n: u64) -> ();
    add_return(n: u64) -> u64;
    compare_exchange(old: u64, new: u64) -> u64;
    exchange(new: u64) -> u64;
    store_min_signed(value: u64) -> u64;
    store_min_unsigned(value: u64) -> u64;
    store_max_signed(value: u64) -> u64;
    store_max_unsigned(value: u64) -> u64;
    add_unless(n: u64, guard: *const u64) -> bool;
    add_within(n: u64, most: u64) -> bool;
    add_within_at_most(n: u64, most: u64, guard: *const u64, limit: u64) -> bool;
    add_within_at_least(n: u64, most: u64, guard: *const u64, limit: u64) -> bool;
    add_pair(first: u64, second: u64) -> ();
    compare_exchange_pair(old_first: u64, old_second: u64, new_first: u64, new_second: u64) -> [u64; 2];
}
