//! Storms: a timer and another thread send two signals to a thread that counts as fast as it can,
//! and both handlers count too, in each other also. However long the handlers take, the thread gets
//! on.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::SeqCst;

use libc::{SIGEV_THREAD_ID, SIGUSR1, SIGUSR2, c_int, pid_t, timer_t};

use crate::board::{Board, count_in_handlers};
use crate::mutants;
use crate::signals::exclusive;
use crate::ways::{Way, for_each_way};

/// Nanoseconds from the end of the timer's handler to its next signal.
const PERIOD: i64 = 30_000;
/// Operations between two looks at the handlers' numbers of runs.
const CHUNK: u64 = 999;

/// How often a handler adds, besides once.
const AGAIN: u64 = 9;

/// When a storm may end.
#[derive(Clone, Copy, Debug)]
struct Length {
    operations: u64,
    /// Of both handlers, and a fiftieth of them of each: on a busy machine the sender rarely runs
    /// beside the thread.
    runs: u64,
}

/// Sends the calling thread SIGUSR2, and again after each run of its handler, until dropped.
///
/// With a period of its own it would starve a thread whose handlers take longer than that.
pub(crate) struct Timer<'a>(&'a Board);

impl<'a> Timer<'a> {
    fn start(board: &'a Board) -> Self {
        let mut timer = core::ptr::null_mut();
        // SAFETY: the structure is plain data, filled before the call that reads it.
        unsafe {
            let mut event: libc::sigevent = core::mem::zeroed();
            event.sigev_notify = SIGEV_THREAD_ID;
            event.sigev_signo = SIGUSR2;
            event.sigev_notify_thread_id = libc::gettid();
            let result = libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer);
            assert_eq!(result, 0, "no timer");
        }
        board.timer.store(timer, SeqCst);
        board.timed.store(true, SeqCst);
        Timer::shoot(timer);
        Timer(board)
    }
}

impl Timer<'_> {
    /// One signal, after a while. For signal handlers too.
    pub(crate) fn shoot(timer: timer_t) {
        // SAFETY: plain data; a timer that is no more is refused.
        unsafe {
            let mut times: libc::itimerspec = core::mem::zeroed();
            times.it_value.tv_nsec = PERIOD;
            libc::timer_settime(timer, 0, &times, core::ptr::null_mut());
        }
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        // The handler, which runs on this thread only, does not use the timer from here on.
        self.0.timed.store(false, SeqCst);
        // SAFETY: a timer of ours.
        unsafe { libc::timer_delete(self.0.timer.load(SeqCst)) };
    }
}

/// Sends `thread` SIGUSR1, again and again: a little after the one before has run its handler, or
/// after a while if it has not, which may be because the two share a CPU. The longer the thread
/// gets nowhere, the more time it is left.
fn send(board: &Board, thread: pid_t) {
    let (mut finished, mut in_vain) = (0, 0);
    while !board.stop.load(SeqCst) {
        let runs = board.runs[0].load(SeqCst);
        // SAFETY: no preconditions. The thread waits for this one before it ends.
        let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGUSR1) };
        assert_eq!(result, 0);
        let mut spins = 0..3000;
        while board.runs[0].load(SeqCst) == runs && spins.next().is_some() {
            std::hint::spin_loop();
        }
        let before = std::mem::replace(&mut finished, board.finished.load(SeqCst));
        in_vain = if before == finished { in_vain + 1 } else { 0 };
        (0..300 + in_vain).for_each(|_| std::hint::spin_loop());
    }
}

/// Counts until the storm is long enough; how much.
fn count<W: Way>(counter: &W, board: &Board, length: Length) -> u64 {
    let mut operations = 0;
    let enough = || {
        let [first, second] = [0, 1].map(|which| board.runs[which].load(SeqCst));
        first + second >= length.runs && first.min(second) >= length.runs / 50
    };
    while operations < length.operations || !enough() {
        for _ in 0..CHUNK / 3 {
            counter.inc();
            counter.add(1);
            counter.add_return(1);
        }
        operations += CHUNK;
        board.finished.store(operations, SeqCst);
    }
    operations
}

/// How much a counter lost in a storm.
fn storm<W: Way>(length: Length) -> i64 {
    let _exclusive = exclusive();
    let (counter, board) = (W::make(), Board::default());
    // Handlers that take their time are interrupted more often.
    board.again.store(AGAIN, SeqCst);
    // SAFETY: both live until no signal comes any more, see below.
    unsafe { count_in_handlers(&counter, &board) };
    // SAFETY: no preconditions.
    let thread = unsafe { libc::gettid() };
    let operations = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(&board, thread));
        let timer = Timer::start(&board);
        let operations = count(&counter, &board, length);
        drop(timer);
        board.stop.store(true, SeqCst);
        sender.join().expect("a sender");
        operations
    });
    // Whatever was sent has arrived: signals to a running thread are delivered, at the latest, when
    // it returns from its next system call, and these block nothing.
    [SIGUSR1, SIGUSR2].into_iter().for_each(ignore);
    let expected = (operations as i64).wrapping_add(board.added_by_handlers());
    let [first, second] = [0, 1].map(|which| board.runs[which].load(SeqCst));
    let lost = expected.wrapping_sub(counter.read());
    let nested = board.nested.load(SeqCst);
    println!(
        "{}: {operations} operations, {first} + {second} signals, {nested} in handlers; lost {lost}",
        W::NAME
    );
    assert_eq!(board.reentered.load(SeqCst), 0);
    lost
}

/// Ends a signal's handler. One that is still pending is discarded.
fn ignore(signal: c_int) {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn is_exact<W: Way>() {
    // A way with system calls takes a hundred times longer.
    let operations = if W::NAME == "sigmask" {
        200_000
    } else {
        5_000_000
    };
    let runs = 3000;
    assert_eq!(storm::<W>(Length { operations, runs }), 0, "{}", W::NAME);
}
for_each_way!(is_exact);

#[test]
fn references_are_exact() {
    is_exact::<mutants::Masked>();
    is_exact::<mutants::InContext>();
}

/// Asserts that counts get lost, if not soon, then in longer storms.
fn loses<W: Way>() {
    let lengths = (0..8).map(|doublings| Length {
        operations: 0,
        runs: 500 << doublings,
    });
    let lost = lengths.into_iter().any(|length| storm::<W>(length) != 0);
    assert!(lost, "{} lost nothing", W::NAME);
}

#[test]
fn mutants_lose() {
    loses::<mutants::Unprotected>();
    loses::<mutants::MaskedInVain>();
    loses::<mutants::WithoutContext>();
}
