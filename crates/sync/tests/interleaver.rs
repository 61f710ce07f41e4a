//! The protocol of `PercpuRwSem` on the interleaver: the flag, the lanes, the fence, and who wakes whom, with every preemption,
//! migration and abort at every step. `src/percpu/mod.rs` is what it is written from.
//!
//! A section is two steps here: it looks at the flag, and it commits on the CPU that it began on. The queue in which a writer sleeps has a
//! lock, as parking_lot_core's has: whoever wants to sleep adds up the lanes once more with that lock held, and whoever wakes takes it.
//!
//! Run with `--nocapture` to see how many states each test visits, and how each mutant fails.

use countersink_interleaver::{Explorer, Failure, Kind, Place, Protocol, Step, World};

/// Virtual CPUs.
const CPUS: usize = 2;
/// The lane of threads that are not registered, the first that is looked at.
const SHARED: usize = 0;
const LANES: usize = CPUS + 1;

/// The lane of a CPU.
fn lane(at: Place) -> usize {
    at.cpu + 1
}

/// A mistake that the laws must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Does not stop sections that have looked at the flag before it was raised.
    NoFence,
    /// Looks at the flag before the section.
    LooksOutside,
    /// A reader on the shared lane takes its count back wherever it is by then.
    BacksOutElsewhere,
    /// A reader on the shared lane that took its count back does not wake the writer that may have seen it.
    BacksOutInSilence,
    /// A reader that leaves does not look for writers.
    LeavesInSilence,
    /// A writer sleeps without another look.
    SleepsBlindly,
    /// A writer that downgrades lowers the flag before it counts itself.
    DowngradesLate,
}

/// What the threads share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    lanes: [i8; LANES],
    flag: bool,
    /// The writers' lock: -1 is a writer, above 0 are readers that wait.
    writers: i8,
    /// The queue's lock, and whether a writer sleeps in it.
    queue: bool,
    sleeps: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pc {
    /// A reader begins, registered or not.
    Enter,
    /// In the section, having seen the flag down.
    Commit,
    /// The same of a mutant, outside of any section.
    CommitOutside,
    AddShared,
    LookShared,
    BackOut,
    /// It is not in: a writer may have seen it.
    WakeAfterRefusal,
    /// Waits for the writers' lock, counts itself, lets go.
    TakeShared,
    Count,
    ReleaseShared,
    Reading,
    LookForWriters,
    Wake,
    /// A writer.
    TakeExclusive,
    Raise,
    Fence(usize),
    Scan(usize, i8),
    LockQueue,
    ScanAgain(usize, i8),
    Sleep,
    Asleep,
    Writing,
    /// A writer that becomes a reader.
    CountSelf,
    Lower,
    ReleaseExclusive,
    /// A writer that gives up.
    GiveUp,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    role: Role,
    pc: Pc,
    rounds: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Reader,
    /// Whose thread is not registered.
    SharedReader,
    Writer,
    Downgrader,
    /// Gives up where it would sleep.
    Hasty,
}

struct Lock {
    roles: Vec<Role>,
    rounds: u8,
    flaw: Option<Flaw>,
}

impl Lock {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// The pc after the last one of a round.
    fn again(&self, frame: &mut Frame) -> Pc {
        frame.rounds += 1;
        if frame.rounds == self.rounds {
            return Pc::Done;
        }
        first(frame.role)
    }

    fn reader(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Option<Pc> {
        let is_shared = frame.role == Role::SharedReader;
        Some(match frame.pc {
            Pc::Enter if memory.flag => Pc::WakeAfterRefusal,
            Pc::Enter if is_shared => Pc::AddShared,
            Pc::Enter if self.has(Flaw::LooksOutside) => Pc::CommitOutside,
            Pc::Enter => Pc::Commit,
            Pc::Commit | Pc::CommitOutside => {
                memory.lanes[lane(at)] += 1;
                Pc::Reading
            }
            Pc::AddShared => {
                memory.lanes[SHARED] += 1;
                Pc::LookShared
            }
            Pc::LookShared if memory.flag => Pc::BackOut,
            Pc::LookShared => Pc::Reading,
            Pc::BackOut => {
                let lane = match self.has(Flaw::BacksOutElsewhere) {
                    true => lane(at),
                    false => SHARED,
                };
                memory.lanes[lane] -= 1;
                if self.has(Flaw::BacksOutInSilence) {
                    Pc::TakeShared
                } else {
                    Pc::WakeAfterRefusal
                }
            }
            // The flag is looked at first, but what comes of that is the same.
            Pc::WakeAfterRefusal if memory.queue => return None,
            Pc::WakeAfterRefusal => {
                memory.sleeps = false;
                Pc::TakeShared
            }
            Pc::TakeShared if memory.writers < 0 => return None,
            Pc::TakeShared => {
                memory.writers += 1;
                Pc::Count
            }
            Pc::Count => {
                memory.lanes[if is_shared { SHARED } else { lane(at) }] += 1;
                Pc::ReleaseShared
            }
            Pc::ReleaseShared => {
                memory.writers -= 1;
                Pc::Reading
            }
            Pc::Reading => {
                memory.lanes[if is_shared { SHARED } else { lane(at) }] -= 1;
                Pc::LookForWriters
            }
            Pc::LookForWriters if memory.flag && !self.has(Flaw::LeavesInSilence) => Pc::Wake,
            Pc::LookForWriters => self.again(frame),
            Pc::Wake if memory.queue => return None,
            Pc::Wake => {
                memory.sleeps = false;
                self.again(frame)
            }
            other => unreachable!("{other:?}"),
        })
    }

    fn writer(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Option<Pc> {
        let downgrades = frame.role == Role::Downgrader;
        Some(match frame.pc {
            Pc::TakeExclusive if memory.writers != 0 => return None,
            Pc::TakeExclusive => {
                memory.writers = -1;
                Pc::Raise
            }
            Pc::Raise => {
                memory.flag = true;
                match self.has(Flaw::NoFence) {
                    true => Pc::Scan(0, 0),
                    false => Pc::Fence(0),
                }
            }
            Pc::Scan(LANES, 0) => Pc::Writing,
            Pc::Scan(LANES, _) if frame.role == Role::Hasty => Pc::GiveUp,
            Pc::Scan(LANES, _) => Pc::LockQueue,
            Pc::Scan(at, sum) => Pc::Scan(at + 1, sum + memory.lanes[at]),
            Pc::LockQueue if memory.queue => return None,
            Pc::LockQueue => {
                memory.queue = true;
                match self.has(Flaw::SleepsBlindly) {
                    true => Pc::Sleep,
                    false => Pc::ScanAgain(0, 0),
                }
            }
            Pc::ScanAgain(LANES, 0) => {
                memory.queue = false;
                Pc::Writing
            }
            Pc::ScanAgain(LANES, _) => Pc::Sleep,
            Pc::ScanAgain(at, sum) => Pc::ScanAgain(at + 1, sum + memory.lanes[at]),
            Pc::Sleep => {
                memory.sleeps = true;
                memory.queue = false;
                Pc::Asleep
            }
            Pc::Asleep if memory.sleeps => return None,
            Pc::Asleep => Pc::Scan(0, 0),
            Pc::Writing if downgrades && !self.has(Flaw::DowngradesLate) => Pc::CountSelf,
            Pc::Writing | Pc::GiveUp => Pc::Lower,
            Pc::CountSelf => {
                memory.lanes[lane(at)] += 1;
                match self.has(Flaw::DowngradesLate) {
                    true => Pc::Reading,
                    false => Pc::Lower,
                }
            }
            Pc::Lower => {
                memory.flag = false;
                Pc::ReleaseExclusive
            }
            Pc::ReleaseExclusive => {
                memory.writers = 0;
                match (downgrades, self.has(Flaw::DowngradesLate)) {
                    (false, _) => self.again(frame),
                    (true, false) => Pc::Reading,
                    (true, true) => Pc::CountSelf,
                }
            }
            Pc::Reading | Pc::LookForWriters | Pc::Wake => return self.reader(at, frame, memory),
            other => unreachable!("{other:?}"),
        })
    }
}

fn first(role: Role) -> Pc {
    match role {
        Role::Reader | Role::SharedReader => Pc::Enter,
        Role::Writer | Role::Downgrader | Role::Hasty => Pc::TakeExclusive,
    }
}

/// Whether it is in as a reader: with its count in the lanes, and the right to read.
fn reads(frame: &Frame, flaw: Option<Flaw>) -> bool {
    let late = flaw == Some(Flaw::DowngradesLate) && frame.role == Role::Downgrader;
    match frame.pc {
        Pc::Reading => true,
        // A downgrader is a reader from when it lets writers in.
        Pc::ReleaseExclusive => frame.role == Role::Downgrader,
        Pc::CountSelf => late,
        _ => false,
    }
}

impl Protocol for Lock {
    type Memory = Memory;
    type Frame = Frame;

    fn start(&self) -> (Memory, Vec<Frame>) {
        let memory = Memory {
            lanes: [0; LANES],
            flag: false,
            writers: 0,
            queue: false,
            sleeps: false,
        };
        let frame = |role: &Role| Frame {
            role: *role,
            pc: first(*role),
            rounds: 0,
        };
        (memory, self.roles.iter().map(frame).collect())
    }

    fn step(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Step {
        match frame.pc {
            Pc::Done => return Step::Finished,
            Pc::Fence(CPUS) => {
                frame.pc = Pc::Scan(0, 0);
                return Step::Ran;
            }
            Pc::Fence(cpu) => {
                frame.pc = Pc::Fence(cpu + 1);
                return Step::Fence(cpu);
            }
            _ => {}
        }
        let next = match frame.role {
            Role::Reader | Role::SharedReader => self.reader(at, frame, memory),
            Role::Writer | Role::Downgrader | Role::Hasty => self.writer(at, frame, memory),
        };
        match next {
            None => Step::Blocked,
            Some(pc) => {
                frame.pc = pc;
                Step::Ran
            }
        }
    }

    fn in_section(&self, frame: &Frame) -> bool {
        frame.pc == Pc::Commit
    }

    fn abort(&self, frame: &mut Frame) {
        frame.pc = Pc::Enter;
    }

    fn check(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let frames = || {
            world
                .threads
                .iter()
                .filter_map(|thread| thread.frames.last())
        };
        let writers = frames().filter(|frame| frame.pc == Pc::Writing).count();
        let readers = frames().filter(|frame| reads(frame, self.flaw)).count();
        match (writers, readers) {
            (0, _) | (1, 0) => Ok(()),
            (1, n) => Err(format!("a writer is in beside {n} readers")),
            (n, _) => Err(format!("{n} writers are in")),
        }
    }

    fn check_final(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        match world.memory.lanes.iter().sum() {
            0_i8 => Ok(()),
            n => Err(format!("{n} readers are left")),
        }
    }
}

fn explore(roles: &[Role], rounds: u8, flaw: Option<Flaw>) -> Result<(), Failure> {
    let lock = Lock {
        roles: roles.to_vec(),
        rounds,
        flaw,
    };
    let result = Explorer::new(CPUS).state_cap(20_000_000).explore(&lock);
    match &result {
        Ok(report) => println!("{roles:?}, {rounds} rounds: {report}"),
        Err(failure) => println!("{roles:?}, {flaw:?}: {failure}"),
    }
    result.map(|_| ())
}

#[track_caller]
fn holds(roles: &[Role], rounds: u8) {
    if let Err(failure) = explore(roles, rounds, None) {
        panic!("{failure}");
    }
}

#[track_caller]
fn breaks(roles: &[Role], flaw: Flaw, kind: Kind) {
    let failure = explore(roles, 1, Some(flaw)).expect_err("a failure");
    assert_eq!(failure.kind, kind, "{failure}");
}

use Role::{Downgrader, Hasty, Reader, SharedReader, Writer};

#[test]
fn readers_and_a_writer() {
    holds(&[Reader, Writer], 2);
    holds(&[Reader, Reader, Writer], 1);
}

#[test]
fn writers_among_themselves() {
    holds(&[Reader, Writer, Writer], 1);
}

#[test]
fn readers_on_the_shared_lane() {
    holds(&[SharedReader, Writer], 2);
    holds(&[SharedReader, Reader, Writer], 1);
    holds(&[SharedReader, SharedReader, Writer], 1);
}

#[test]
fn a_writer_becomes_a_reader() {
    holds(&[Reader, Downgrader], 1);
    holds(&[Writer, Downgrader], 1);
    holds(&[SharedReader, Writer, Downgrader], 1);
}

#[test]
fn a_writer_gives_up() {
    holds(&[Reader, Hasty, Writer], 1);
    holds(&[SharedReader, Hasty, Writer], 1);
}

#[test]
fn without_the_fence_a_writer_comes_in_beside_a_reader() {
    breaks(&[Reader, Writer], Flaw::NoFence, Kind::Law);
}

#[test]
fn a_flag_seen_outside_of_the_section_is_seen_too_soon() {
    breaks(&[Reader, Writer], Flaw::LooksOutside, Kind::Law);
}

#[test]
fn a_reader_must_back_out_where_it_came_in() {
    let roles = [Reader, SharedReader, Writer];
    breaks(&roles, Flaw::BacksOutElsewhere, Kind::Law);
}

#[test]
fn a_reader_that_backs_out_must_wake() {
    breaks(
        &[SharedReader, Writer],
        Flaw::BacksOutInSilence,
        Kind::Deadlock,
    );
}

#[test]
fn a_reader_that_leaves_must_wake() {
    breaks(&[Reader, Writer], Flaw::LeavesInSilence, Kind::Deadlock);
}

#[test]
fn a_writer_must_look_again_before_it_sleeps() {
    breaks(&[Reader, Writer], Flaw::SleepsBlindly, Kind::Deadlock);
}

#[test]
fn a_downgrade_counts_first() {
    breaks(&[Writer, Downgrader], Flaw::DowngradesLate, Kind::Law);
}
