//! The locks that are measured, by one interface.

use countersink_sync::lock_api::{RawRwLock, RwLock};
use countersink_sync::rwsem::{LoadFirst, OwnershipFirst};
use countersink_sync::{RawPercpuRwSem, RawRwSem};

use super::spinlock::SpinlockRwSem;
use super::variants::Twins;

countersink_sync::lock_events! {
    /// What happens to the lock that counts its events, under the seed's names.
    pub(super) RWSEM: Rwsem = "rwsem"
}

/// A lock around the twins.
pub(super) trait Lock: Send + Sync {
    fn new() -> Self;
    fn read(&self, body: impl FnOnce(&Twins));
    fn write(&self, body: impl FnOnce(&Twins));
    /// Whether it came in.
    fn try_read(&self, body: impl FnOnce(&Twins)) -> bool;
    fn try_write(&self, body: impl FnOnce(&Twins)) -> bool;
}

impl<L: RawRwLock + Send + Sync> Lock for RwLock<L, Twins> {
    fn new() -> Self {
        RwLock::new(Twins::default())
    }
    #[inline(always)]
    fn read(&self, body: impl FnOnce(&Twins)) {
        body(&RwLock::read(self));
    }
    #[inline(always)]
    fn write(&self, body: impl FnOnce(&Twins)) {
        body(&RwLock::write(self));
    }
    #[inline(always)]
    fn try_read(&self, body: impl FnOnce(&Twins)) -> bool {
        RwLock::try_read(self).map(|twins| body(&twins)).is_some()
    }
    #[inline(always)]
    fn try_write(&self, body: impl FnOnce(&Twins)) -> bool {
        RwLock::try_write(self).map(|twins| body(&twins)).is_some()
    }
}

/// For locks whose guards come in a `Result`, since their holders may panic; ours do not.
macro_rules! poisoned {
    ($($lock:ty),*) => {
        $(
            impl Lock for $lock {
                fn new() -> Self {
                    Self::new(Twins::default())
                }
                #[inline(always)]
                fn read(&self, body: impl FnOnce(&Twins)) {
                    if let Ok(twins) = self.read() {
                        body(&twins);
                    }
                }
                #[inline(always)]
                fn write(&self, body: impl FnOnce(&Twins)) {
                    if let Ok(twins) = self.write() {
                        body(&twins);
                    }
                }
                #[inline(always)]
                fn try_read(&self, body: impl FnOnce(&Twins)) -> bool {
                    self.try_read().map(|twins| body(&twins)).is_ok()
                }
                #[inline(always)]
                fn try_write(&self, body: impl FnOnce(&Twins)) -> bool {
                    self.try_write().map(|twins| body(&twins)).is_ok()
                }
            }
        )*
    };
}

pub(super) type Std = std::sync::RwLock<Twins>;
pub(super) type Sharded = crossbeam_utils::sync::ShardedLock<Twins>;
poisoned!(Std, Sharded);

pub(super) type Spin = spin::RwLock<Twins>;

impl Lock for Spin {
    fn new() -> Self {
        Spin::new(Twins::default())
    }
    #[inline(always)]
    fn read(&self, body: impl FnOnce(&Twins)) {
        body(&self.read());
    }
    #[inline(always)]
    fn write(&self, body: impl FnOnce(&Twins)) {
        body(&self.write());
    }
    #[inline(always)]
    fn try_read(&self, body: impl FnOnce(&Twins)) -> bool {
        self.try_read().map(|twins| body(&twins)).is_some()
    }
    #[inline(always)]
    fn try_write(&self, body: impl FnOnce(&Twins)) -> bool {
        self.try_write().map(|twins| body(&twins)).is_some()
    }
}

pub(super) type Default = RwLock<RawRwSem, Twins>;
pub(super) type OwnFirst = RwLock<RawRwSem<OwnershipFirst>, Twins>;
pub(super) type Loads = RwLock<RawRwSem<LoadFirst>, Twins>;
pub(super) type Counted = RwLock<RawRwSem<OwnershipFirst, Rwsem>, Twins>;
pub(super) type Percpu = RwLock<RawPercpuRwSem, Twins>;
pub(super) type Spinlock = RwLock<SpinlockRwSem, Twins>;
pub(super) type ParkingLot = RwLock<parking_lot::RawRwLock, Twins>;
