//! What a thread that counts, its handlers, and whoever checks them have in common.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};

use libc::{SIGUSR1, SIGUSR2, c_int, c_void};

use crate::signals::install;
use crate::storm::Timer;
use crate::ways::Way;

/// What each handler adds. Digits far apart, so that a wrong total says whose counts are missing.
pub(crate) const AMOUNTS: [i64; 2] = [1 << 20, 1 << 40];

/// The signals, in the order of the digits.
pub(crate) const SIGNALS: [c_int; 2] = [SIGUSR1, SIGUSR2];

/// Which of the two a signal is.
pub(crate) fn which(signal: c_int) -> usize {
    usize::from(signal == SIGUSR2)
}

/// Plain memory that may be shared with a tracer.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Operations that have ended.
    pub(crate) finished: AtomicU64,
    /// Set when the thread should end.
    pub(crate) stop: AtomicBool,
    /// Results of operations that no order of events explains.
    pub(crate) violations: AtomicU64,
    /// The counter's value at the end.
    pub(crate) total: AtomicU64,
    /// How often each handler adds, when it runs, besides once.
    pub(crate) again: AtomicU64,
    /// How often each handler ran.
    pub(crate) runs: [AtomicU64; 2],
    /// Whether the second handler starts the timer again when it ends.
    pub(crate) timed: AtomicBool,
    /// That timer; null is one too.
    pub(crate) timer: AtomicPtr<c_void>,
    /// A bit for each handler that is running.
    pub(crate) active: AtomicU32,
    /// How often a handler interrupted the other.
    pub(crate) nested: AtomicU64,
    /// How often a handler interrupted itself.
    pub(crate) reentered: AtomicU64,
}

impl Board {
    /// What the handlers have added; like the counters, it wraps.
    pub(crate) fn added_by_handlers(&self) -> i64 {
        let times = self.again.load(SeqCst) + 1;
        let runs = self.runs.iter().map(|runs| runs.load(SeqCst));
        runs.zip(AMOUNTS).fold(0, |sum: i64, (runs, amount)| {
            sum.wrapping_add(((runs * times) as i64).wrapping_mul(amount))
        })
    }
}

/// What the handlers find; set while they are installed.
static BOARD: AtomicPtr<Board> = AtomicPtr::new(core::ptr::null_mut());
static COUNTER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Makes both signals' handlers add to `counter`, as its way asks for, and write on `board`.
///
/// # Safety
/// Both live as long as the signals come, and those interrupt the counter's thread only.
pub(crate) unsafe fn count_in_handlers<W: Way>(counter: &W, board: &Board) {
    BOARD.store((&raw const *board).cast_mut(), SeqCst);
    COUNTER.store((&raw const *counter).cast_mut().cast(), SeqCst);
    for signal in SIGNALS {
        install(signal, W::ENTRY, count::<W>);
    }
}

/// The body of both handlers.
fn count<W: Way>(signal: c_int) {
    // SAFETY: what count_in_handlers() was promised.
    let (board, counter) = unsafe { (&*BOARD.load(SeqCst), &*COUNTER.load(SeqCst).cast::<W>()) };
    let bit = 1 << which(signal);
    let others = board.active.fetch_or(bit, SeqCst);
    if others & bit != 0 {
        board.reentered.fetch_add(1, SeqCst);
    }
    if others & !bit != 0 {
        board.nested.fetch_add(1, SeqCst);
    }
    for _ in 0..=board.again.load(SeqCst) {
        counter.add(AMOUNTS[which(signal)]);
    }
    board.runs[which(signal)].fetch_add(1, SeqCst);
    board.active.fetch_and(!bit, SeqCst);
    if which(signal) == 1 && board.timed.load(SeqCst) {
        Timer::shoot(board.timer.load(SeqCst));
    }
}
