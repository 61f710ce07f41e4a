//! A reader-writer lock whose readers share no cache line.
//!
//! A reader adds 1 to a word of its own CPU, unless a flag is up, in one restartable section: no locked instruction, and
//! nothing that another CPU writes. It subtracts 1 when it leaves, on whatever CPU it is by then, so only the sum over all CPUs means
//! something: how many readers there are. A writer
//!
//! 1. takes a lock that keeps other writers out,
//! 2. raises the flag, so that no section that looks at it later adds,
//! 3. stops all sections for a moment ([`Fence`]), so that none is left that has looked before and adds later: from here on
//!    readers only leave,
//! 4. waits until the sum is 0. Since it only falls, a sum of 0 that was added up while readers left is one.
//!
//! Readers that find the flag up wait for the writers' lock as its readers, then count themselves and let go of it.
//! So a writer costs microseconds: a system call that interrupts every CPU which runs a thread of the program. This lock is for what is read
//! all the time and written hardly ever.
//!
//! Where the process has no sections, or the kernel no such fence, all of it is an [`RwSem`](crate::RwSem); [`availability`]
//! says so, and `countersink doctor` says why.
//!
//! - The words lie in private memory: a forked child has a copy, in which readers and writers of other threads stay for ever, as
//!   with every lock. New locks it can make and use; where it was forked while another thread took or gave back words, they are
//!   [`RwSem`](crate::RwSem)s.
//! - **Readers do not recurse**: one that reads while it reads waits for ever if a writer came in between, as std's may.
//! - Taking the lock for the first time allocates, and may register the process for the fence, which takes milliseconds once there are
//!   threads: [`availability`] does that at a time of your choice.
//! - A process that forbids `membarrier` after it has used it, by a seccomp filter, is aborted by its next writer: that could neither
//!   come in nor be refused.

mod words;

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use std::time::{Duration, Instant};

use countersink_percpu::{BlockCell, Fence, FenceError, Slot};
use lock_api::{GuardSend, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RwLock};

use crate::parking::{ParkResult, ParkToken, UnparkToken, park, unpark_one};
use crate::rwsem::RawRwSem;

/// A value behind a [`RawPercpuRwSem`].
pub type PercpuRwSem<T> = RwLock<RawPercpuRwSem, T>;

/// Whether readers of [`PercpuRwSem`]s in this process touch only their own CPU's memory; registers the process for that, which takes
/// milliseconds once it has threads.
///
/// # Errors
/// Why not: every such lock is an [`RwSem`](crate::RwSem) then.
pub fn availability() -> Result<(), FenceError> {
    fence().map(|_| ())
}

/// Registered each time, which costs a system call more once it was: a cell that is filled once would be locked for ever in a
/// child that was forked meanwhile.
fn fence() -> Result<Fence, FenceError> {
    Fence::new()
}

/// How readers are counted.
#[derive(Clone, Copy)]
enum Readers {
    /// Not known before the first use.
    Unknown,
    /// In words of the CPUs.
    Counted(Slot<'static>),
    /// As readers of the writers' lock, for want of sections, of a fence or of memory.
    Fallback,
}

/// The lock. See the [module](self).
pub struct RawPercpuRwSem {
    /// How many readers: a word in the lane of each CPU, once there are some.
    readers: BlockCell<1>,
    /// Not 0 while a writer is in, or wants to be.
    flag: AtomicU64,
    /// Writers among themselves, and readers that wait for them.
    writers: RawRwSem,
    /// Whether there will never be words.
    is_fallback: core::sync::atomic::AtomicBool,
}

impl RawPercpuRwSem {
    /// A lock that nobody holds.
    pub const fn new() -> Self {
        RawPercpuRwSem {
            readers: BlockCell::new(),
            flag: AtomicU64::new(0),
            writers: RawRwSem::new(),
            is_fallback: core::sync::atomic::AtomicBool::new(false),
        }
    }

    #[inline(always)]
    fn known(&self) -> Readers {
        match self.readers.get() {
            Some(words) => Readers::Counted(words.slot::<0, u64>()),
            None if self.is_fallback.load(Acquire) => Readers::Fallback,
            None => Readers::Unknown,
        }
    }

    /// How readers are counted, from the first use on for ever: decided with the writers' lock held, so that nobody is in by another
    /// way.
    #[cold]
    fn decide(&self) -> Readers {
        self.writers.lock_exclusive();
        let mut known = self.known();
        if let Readers::Unknown = known {
            match fence().ok().and_then(|_| words::claim()) {
                Some(words) => {
                    if let Err(words) = self.readers.publish(words) {
                        words::release(words);
                    }
                }
                None => self.is_fallback.store(true, Release),
            }
            known = self.known();
        }
        // SAFETY: taken above.
        #[allow(unsafe_code)]
        unsafe {
            self.writers.unlock_exclusive();
        }
        known
    }

    fn how(&self) -> Readers {
        match self.known() {
            Readers::Unknown => self.decide(),
            known => known,
        }
    }

    /// Counts a reader, unless there is a writer.
    #[inline(always)]
    fn enter(&self) -> bool {
        match self.readers.get() {
            Some(words) => words.slot::<0, u64>().add_unless(1, &self.flag),
            None => false,
        }
    }

    /// Waits as a reader, with a way to get the writers' lock as one; whether it is in then.
    #[cold]
    fn wait_to_read(&self, get: impl FnOnce(&RawRwSem) -> bool) -> bool {
        let how = self.how();
        if let Readers::Counted(_) = how {
            if self.enter() {
                // It was only the first use.
                return true;
            }
            // On the shared lane this reader was counted for a moment, and a writer may have gone to sleep for it.
            self.wake_waiting_writer();
        }
        if !get(&self.writers) {
            return false;
        }
        if let Readers::Counted(readers) = how {
            // There is no writer, nor can one come, while this has the writers' lock.
            readers.add(1);
            // SAFETY: taken above.
            #[allow(unsafe_code)]
            unsafe {
                self.writers.unlock_shared();
            }
        }
        true
    }

    /// A reader leaves that came in by the writers' lock.
    #[allow(unsafe_code)]
    #[cold]
    #[inline(never)]
    unsafe fn leave_writers(&self) {
        // SAFETY: the caller is such a reader.
        unsafe { self.writers.unlock_shared() };
    }

    fn key(&self) -> usize {
        self.flag.as_ptr().addr()
    }

    #[inline(always)]
    fn wake_waiting_writer(&self) {
        if self.flag.load(Acquire) != 0 {
            self.wake_writer();
        }
    }

    /// A reader has left, or was refused, and a writer may sleep for it.
    #[cold]
    #[inline(never)]
    fn wake_writer(&self) {
        // SAFETY: the flag's address is this lock's, and nothing else parks under it; the callback neither panics nor parks.
        #[allow(unsafe_code)]
        unsafe {
            unpark_one(self.key(), |_| UnparkToken(0));
        }
    }

    /// Waits until no reader is in, with the writers' lock held; `false` if it took too long, and readers may come again.
    fn drain(&self, readers: Slot<'static>, deadline: Option<Instant>) -> bool {
        // SeqCst: before the lanes are looked at, for readers on the shared lane, which add before they look at the flag.
        self.flag.store(1, SeqCst);
        if fence().and_then(|fence| fence.all_cpus()).is_err() {
            // Registered, and refused now: see the module's last words.
            std::process::abort();
        }
        while readers.sum() != 0 {
            // A reader that leaves later looks at the flag later still, and wakes whoever sleeps.
            let validate = || readers.sum() != 0;
            // SAFETY: as in wake_writer().
            #[allow(unsafe_code)]
            let parked = unsafe {
                park(
                    self.key(),
                    validate,
                    || {},
                    |_, _| {},
                    ParkToken(0),
                    deadline,
                )
            };
            if let ParkResult::TimedOut = parked
                && readers.sum() != 0
            {
                self.flag.store(0, Release);
                return false;
            }
        }
        // What readers did before they left was released by their subtraction, and acquired by the sum.
        true
    }

    /// Makes the holder of the writers' lock the writer; lets go of it if readers stay too long.
    fn become_writer(&self, deadline: Option<Instant>) -> bool {
        let is_in = match self.how_locked() {
            Some(readers) => self.drain(readers, deadline),
            None => true,
        };
        if !is_in {
            // SAFETY: the caller took it.
            #[allow(unsafe_code)]
            unsafe {
                self.writers.unlock_exclusive();
            }
        }
        is_in
    }

    /// The readers' word, where they have one.
    fn how_locked(&self) -> Option<Slot<'static>> {
        match self.known() {
            Readers::Counted(readers) => Some(readers),
            _ => None,
        }
    }

    fn lower_flag(&self) {
        // Release: a reader that sees it comes in after what this writer wrote.
        self.flag.store(0, Release);
    }
}

impl Default for RawPercpuRwSem {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RawPercpuRwSem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readers = self.how_locked().map(|readers| readers.sum());
        f.debug_struct("RawPercpuRwSem")
            .field("readers", &readers)
            .field("flag", &self.flag)
            .field("writers", &self.writers)
            .finish()
    }
}

impl Drop for RawPercpuRwSem {
    fn drop(&mut self) {
        if let Some(words) = self.readers.slots() {
            words::release(words);
        }
    }
}

// SAFETY: see the module: a writer is in only with the writers' lock, the flag up and a sum of 0 after the fence; a reader
// only with 1 in the sum, added while the flag was down.
#[allow(unsafe_code)]
unsafe impl RawRwLock for RawPercpuRwSem {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "lock_api asks for it"
    )]
    const INIT: Self = Self::new();

    // A reader may leave on any thread, as on any CPU.
    type GuardMarker = GuardSend;

    #[inline]
    fn lock_shared(&self) {
        if !self.enter() {
            self.wait_to_read(|writers| {
                writers.lock_shared();
                true
            });
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.enter() || self.wait_to_read(RawRwSem::try_lock_shared)
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        let Some(words) = self.readers.get() else {
            // SAFETY: the caller is a reader, and there are no words.
            return unsafe { self.leave_writers() };
        };
        words.slot::<0, u64>().add_release(u64::MAX);
        // The fence orders this for a writer: it sees the sum without this reader, or this sees the flag.
        self.wake_waiting_writer();
    }

    fn lock_exclusive(&self) {
        self.how();
        self.writers.lock_exclusive();
        self.become_writer(None);
    }

    /// Costs what a writer costs, also where readers are in.
    fn try_lock_exclusive(&self) -> bool {
        self.how();
        self.writers.try_lock_exclusive() && self.become_writer(Some(Instant::now()))
    }

    unsafe fn unlock_exclusive(&self) {
        self.lower_flag();
        // SAFETY: the caller is the writer.
        unsafe { self.writers.unlock_exclusive() };
    }

    fn is_locked(&self) -> bool {
        let counted = self.how_locked().is_some_and(|readers| readers.sum() != 0);
        counted || self.writers.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.writers.is_locked_exclusive()
    }
}

// SAFETY: the reader is counted before the flag falls, and the writers' lock is left after that.
#[allow(unsafe_code)]
unsafe impl RawRwLockDowngrade for RawPercpuRwSem {
    unsafe fn downgrade(&self) {
        match self.how_locked() {
            Some(readers) => {
                readers.add(1);
                // SAFETY: the caller is the writer.
                unsafe { self.unlock_exclusive() };
            }
            // SAFETY: as above.
            None => unsafe { self.writers.downgrade() },
        }
    }
}

// SAFETY: as unlock_shared and unlock_exclusive.
#[allow(unsafe_code)]
unsafe impl RawRwLockFair for RawPercpuRwSem {
    /// A reader hands nothing over: a writer that waits comes in when the last has left, fair or not.
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: the caller is a reader.
        unsafe { self.unlock_shared() };
    }

    unsafe fn unlock_exclusive_fair(&self) {
        self.lower_flag();
        // SAFETY: the caller is the writer.
        unsafe { self.writers.unlock_exclusive_fair() };
    }
}

// SAFETY: true is returned only with the lock.
#[allow(unsafe_code)]
unsafe impl RawRwLockTimed for RawPercpuRwSem {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.enter() || self.wait_to_read(|writers| writers.try_lock_shared_for(timeout))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        self.enter() || self.wait_to_read(|writers| writers.try_lock_shared_until(timeout))
    }

    /// A time too far away to be told is never reached.
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.try_lock_exclusive_until(deadline),
            None => {
                self.lock_exclusive();
                true
            }
        }
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        self.how();
        self.writers.try_lock_exclusive_until(timeout) && self.become_writer(Some(timeout))
    }
}
