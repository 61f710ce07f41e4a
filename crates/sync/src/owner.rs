//! Who holds a lock, for debugging.

use core::fmt::Debug;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Whether a lock remembers who took it.
pub trait Owner: Debug + Send + Sync + 'static {
    /// Of a lock that nobody has taken.
    #[doc(hidden)]
    const NOBODY: Self;
    #[doc(hidden)]
    fn note(&self, kind: OwnerKind);
    #[doc(hidden)]
    fn clear(&self);
}

/// How an owner has a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    /// As the writer.
    Writer,
    /// As a reader, the last that came; there may be others, and this one may have left.
    Reader,
}

/// Remembers nobody, and takes no room.
#[derive(Debug)]
pub struct NoOwner;

impl Owner for NoOwner {
    const NOBODY: Self = NoOwner;
    #[inline(always)]
    fn note(&self, _: OwnerKind) {}
    #[inline(always)]
    fn clear(&self) {}
}

/// Remembers the thread that took the lock last: 8 bytes, a system call each time, and a cache line that readers write too, so
/// for debugging only. It is written after the lock is taken, and not at one moment with it.
#[derive(Debug)]
pub struct RecordOwner(AtomicU64);

const READER: u64 = 1 << 63;

impl RecordOwner {
    /// The thread, as the system numbers it, and how it has the lock; `None` if a writer was the last and has left.
    pub fn get(&self) -> Option<(OwnerKind, u64)> {
        let owner = self.0.load(Relaxed);
        let kind = if owner & READER == 0 {
            OwnerKind::Writer
        } else {
            OwnerKind::Reader
        };
        (owner != 0).then_some((kind, owner & !READER))
    }
}

impl Owner for RecordOwner {
    const NOBODY: Self = RecordOwner(AtomicU64::new(0));

    fn note(&self, kind: OwnerKind) {
        let reader = if kind == OwnerKind::Reader { READER } else { 0 };
        self.0.store(this_thread() | reader, Relaxed);
    }

    fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}

/// Asked for each time: a number that was kept would be the parent's after a fork.
#[cfg(target_os = "linux")]
fn this_thread() -> u64 {
    rustix::thread::gettid().as_raw_nonzero().get() as u64
}

/// Threads are numbered by their first use.
#[cfg(not(target_os = "linux"))]
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    std::thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}
