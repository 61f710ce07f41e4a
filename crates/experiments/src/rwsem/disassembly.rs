//! `try_read` in its two forms as functions of their own, to be disassembled as the mails do: before the series it loads first,
//! after it tries for ownership first.

use countersink_sync::RawRwSem;
use countersink_sync::lock_api::RawRwLock;
use countersink_sync::rwsem::{LoadFirst, OwnershipFirst};

/// Before: loads first.
#[inline(never)]
fn try_read_before(lock: &RawRwSem<LoadFirst>) -> bool {
    lock.try_lock_shared()
}

/// After: tries for ownership first.
#[inline(never)]
fn try_read_after(lock: &RawRwSem<OwnershipFirst>) -> bool {
    lock.try_lock_shared()
}

/// Where the functions are in this program: what they are, and their addresses.
pub fn functions() -> [(&'static str, usize); 2] {
    [
        (
            "before: the word is loaded first",
            try_read_before as fn(_) -> _ as usize,
        ),
        (
            "after: ownership is tried for first",
            try_read_after as fn(_) -> _ as usize,
        ),
    ]
}
