//! A signal at every instruction boundary of every operation.
//!
//! A child repeats one operation, and its parent single-steps it. In repetition *i* the parent sends
//! SIGUSR1 when the operation has executed *i* instructions, until one ends before its *i*-th: so
//! each boundary is hit once, entry and exit included. Then, for some *i*, a second signal comes *j*
//! boundaries after the first, for each *j* until the operation ends, or for a grid of them where
//! there are many: in the handler, behind it, or while both are put off. The second is another
//! signal, or the same one again.
//!
//! Sections of [`PerCpu`] do not survive a step, so there the steps reach the shared lane after 16
//! attempts; after the signals the child runs freely, and sections commit again.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::SeqCst;

use countersink_percpu::local::PerCpu;
use countersink_percpu::{Mechanism, request};
use libc::{SIGUSR1, SIGUSR2, c_int};

use crate::board::{AMOUNTS, Board, count_in_handlers};
use crate::mutants;
use crate::tracee::{Tracee, pause, shared_board};
use crate::ways::{Way, for_each_way};

/// What each repetition adds, and sets.
const N: i64 = 3;
/// The lower half all ones: the first addition carries into the upper.
const SET: i64 = u32::MAX as i64;

/// For about how many boundaries of an operation second signals are tried, and about how many steps
/// each of these is worth.
const FIRST_BOUNDARIES: u64 = 24;
const STEPS: u64 = 300;
/// What every eighth of them is worth. A step takes about 10 microseconds, 25 on a busy machine.
const MANY_STEPS: u64 = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Inc,
    Add,
    AddReturn,
    Set,
    Read,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Inc, Self::Add, Self::AddReturn, Self::Set, Self::Read];

    /// The operation by itself. What has no result returns 0.
    fn function<W: Way>(self) -> fn(&W) -> i64 {
        match self {
            Operation::Inc => |counter| {
                counter.inc();
                0
            },
            Operation::Add => |counter| {
                counter.add(N);
                0
            },
            Operation::AddReturn => |counter| counter.add_return(N),
            Operation::Set => |counter| {
                counter.set(SET);
                0
            },
            Operation::Read => |counter| counter.read(),
        }
    }

    /// What it adds.
    fn amount(self) -> i64 {
        match self {
            Operation::Inc => 1,
            Operation::Add | Operation::AddReturn => N,
            Operation::Set | Operation::Read => 0,
        }
    }

    /// Whether the result, and the counter's value before and after, have an explanation: handlers
    /// added whole amounts in between.
    fn explains<W: Way>(self, before: i64, result: i64, after: i64) -> bool {
        match self {
            Operation::AddReturn if W::RETURNS_VALUE => (before + N..=after).contains(&result),
            Operation::Read => (before..=after).contains(&result),
            Operation::Set => {
                let [thread, first, second] = digits(after - SET);
                thread == 0 && (0..=2).contains(&first) && (0..=1).contains(&second)
            }
            _ => true,
        }
    }
}

/// An amount as what the thread and each handler added of it.
fn digits(amount: i64) -> [i64; 3] {
    let (first, second) = (AMOUNTS[0], AMOUNTS[1]);
    [amount % first, amount % second / first, amount / second]
}

/// What the child does.
///
/// # Safety
/// It is a child of its own, with the counter and a board in shared memory.
unsafe fn repeat<W: Way>(counter: &W, board: &Board, operation: Operation) -> c_int {
    // SAFETY: both outlive the child, which has one thread.
    unsafe { count_in_handlers(counter, board) };
    let function = std::hint::black_box(operation.function::<W>());
    // Whatever is done once is done now.
    function(counter);
    let start = counter.read();
    while !board.stop.load(SeqCst) {
        let before = counter.read();
        pause();
        let result = function(counter);
        board.finished.fetch_add(1, SeqCst);
        if !operation.explains::<W>(before, result, counter.read()) {
            board.violations.fetch_add(1, SeqCst);
        }
    }
    let total = counter.read().wrapping_sub(start);
    board.total.store(total as u64, SeqCst);
    0
}

/// A child at the beginning of a repetition, between calls.
struct Session {
    tracee: Tracee,
    board: &'static Board,
    repetition: u64,
}

impl Session {
    /// `None` where tracing is not allowed.
    fn start<W: Way>(operation: Operation) -> Option<Self> {
        let (counter, board) = (W::make(), shared_board());
        // SAFETY: repeat() takes no lock and allocates nothing.
        let tracee = unsafe { Tracee::start(|| repeat(&counter, board, operation)) }?;
        Some(Session {
            tracee,
            board,
            repetition: 0,
        })
    }

    /// Whether the operation of this repetition has ended.
    fn over(&self) -> bool {
        self.board.finished.load(SeqCst) > self.repetition
    }

    /// Makes steps; whether the operation is still going on after them.
    fn advance(&mut self, steps: u64) -> bool {
        assert!(steps < 100_000, "an operation without an end");
        for _ in 0..steps {
            if self.over() {
                return false;
            }
            self.tracee.step();
        }
        !self.over()
    }

    /// Lets the child run to the next repetition.
    fn next(&mut self) {
        assert!(self.tracee.run(), "died in repetition {}", self.repetition);
        self.repetition += 1;
        assert_eq!(self.board.finished.load(SeqCst), self.repetition);
    }

    /// One signal at each boundary; how many boundaries there are.
    fn every_boundary(&mut self) -> u64 {
        let mut boundary = 0;
        while self.advance(boundary) {
            self.tracee.send(SIGUSR1);
            self.next();
            boundary += 1;
        }
        self.next();
        boundary
    }

    /// A signal at some boundaries, and a second one at each boundary after it, or at some where that
    /// would be too many steps; how many pairs, and how many of the second interrupted a handler.
    fn every_pair(&mut self, boundaries: u64, second: c_int) -> [u64; 2] {
        let (mut pairs, mut in_handler) = (0, 0);
        let firsts = (0..boundaries).step_by(boundaries.div_ceil(FIRST_BOUNDARIES) as usize);
        for (number, first) in (0..).zip(firsts) {
            let rest = self.boundaries_after(first);
            let worth = if number % 8 == 2 { MANY_STEPS } else { STEPS };
            let stride = (rest * (first + rest / 2) / worth).max(1);
            // Strides that begin at different places meet all boundaries together.
            for after in (number % stride..rest).step_by(stride as usize) {
                assert!(self.advance(first), "another path");
                self.tracee.send(SIGUSR1);
                assert!(self.advance(after), "another path");
                in_handler += u64::from(self.board.active.load(SeqCst) != 0);
                pairs += 1;
                self.tracee.send(second);
                self.next();
            }
        }
        [pairs, in_handler]
    }

    /// How many boundaries follow a signal at one of them, up to the operation's end.
    fn boundaries_after(&mut self, first: u64) -> u64 {
        assert!(self.advance(first), "another path");
        self.tracee.send(SIGUSR1);
        let mut after = 0;
        while self.advance(1) {
            after += 1;
        }
        self.next();
        after + 1
    }

    /// Lets the child end, and compares what it counted.
    fn end(mut self, operation: Operation) -> Found {
        let board = self.board;
        board.stop.store(true, SeqCst);
        assert!(!self.tracee.run(), "another repetition");
        assert_eq!(self.tracee.status(), Some(0));
        let runs = [0, 1].map(|which| board.runs[which].load(SeqCst));
        let expected = board.finished.load(SeqCst) as i64 * operation.amount();
        let expected = expected + board.added_by_handlers();
        Found {
            lost: digits(expected - board.total.load(SeqCst) as i64),
            not_run: [0, 1].map(|which| self.tracee.delivered[which].wrapping_sub(runs[which])),
            violations: board.violations.load(SeqCst),
            reentered: board.reentered.load(SeqCst),
        }
    }
}

/// What was not as it should be.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// Additions of the thread and of each handler that are missing from the total.
    lost: [i64; 3],
    /// Signals that were delivered, and whose handlers did not run, of each.
    not_run: [u64; 2],
    violations: u64,
    reentered: u64,
}

impl Found {
    const NOTHING: Self = Found {
        lost: [0; 3],
        not_run: [0; 2],
        violations: 0,
        reentered: 0,
    };
}

/// Prints what was covered, and returns what was found; `None` where tracing is not allowed.
fn explore<W: Way>(operation: Operation) -> Option<Found> {
    let Some(mut session) = Session::start::<W>(operation) else {
        println!(
            "{} {operation:?}: NOT TESTED, tracing is not allowed",
            W::NAME
        );
        return None;
    };
    let boundaries = session.every_boundary();
    let [others, nested] = session.every_pair(boundaries, SIGUSR2);
    // What only loads, or stores once, cannot tell one signal from another.
    let [same, _] = match operation.amount() {
        0 => [0; 2],
        _ => session.every_pair(boundaries, SIGUSR1),
    };
    let mut found = session.end(operation);
    if operation == Operation::Set {
        // What was set over is gone; the child has checked each value.
        found.lost = [0; 3];
    }
    println!(
        "{} {operation:?}: {boundaries} boundaries, {others} with another signal after ({nested} in \
         the handler), {same} with the same; {found:?}",
        W::NAME
    );
    Some(found)
}

fn at_every_boundary<W: Way>() {
    exact_at_every_boundary::<W>(&Operation::ALL);
}
for_each_way!(at_every_boundary);

fn exact_at_every_boundary<W: Way>(operations: &[Operation]) {
    for &operation in operations {
        if let Some(found) = explore::<W>(operation) {
            assert_eq!(found, Found::NOTHING, "{} {operation:?}", W::NAME);
        }
    }
}

#[test]
fn references_are_exact() {
    let additions = [Operation::Add, Operation::AddReturn];
    exact_at_every_boundary::<mutants::Masked>(&additions);
    exact_at_every_boundary::<mutants::InContext>(&additions);
}

/// Asserts that additions of the handlers are found missing.
fn loses<W: Way>() {
    if let Some(found) = explore::<W>(Operation::Add) {
        let [thread, first, second] = found.lost;
        // The thread overwrites the first handler at two boundaries at least, and also what the
        // second adds there; nothing overwrites the thread.
        assert!(thread == 0 && first >= 2 && second > 0, "{found:?}");
    }
}

#[test]
fn an_unprotected_counter_loses() {
    loses::<mutants::Unprotected>();
}

#[test]
fn handlers_that_are_not_put_off_lose() {
    loses::<mutants::MaskedInVain>();
}

#[test]
fn handlers_without_a_context_lose() {
    loses::<mutants::WithoutContext>();
    // Not asserted: where the compiler merges load and store, nothing is lost.
    explore::<mutants::RealWithoutContext>(Operation::Add);
}

#[test]
fn setting_halves_is_found() {
    if let Some(found) = explore::<mutants::SetInHalves>(Operation::Set) {
        assert!(found.violations > 0, "{found:?}");
    }
}

/// The mechanism is chosen once in a process, so this one needs another.
#[test]
#[cfg(not(countersink_portable))]
fn locked_lanes() {
    let program = std::env::current_exe().expect("a path");
    let test = "stepped::locked_lanes_here";
    let output = std::process::Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .expect("the same program again");
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(text.contains("counts with locked operations"), "{text}");
}

#[test]
#[ignore = "needs a process of its own: started by stepped::locked_lanes"]
fn locked_lanes_here() {
    match request(Mechanism::LockedLanes) {
        Ok(choice) => println!("counts with {choice}"),
        Err(error) => return println!("NOT TESTED: {error}"),
    }
    at_every_boundary::<PerCpu<'static>>();
}
