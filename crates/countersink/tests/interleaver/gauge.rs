//! Gauges: what went up and what went down in two words, read as downs, ups, downs.

use countersink_interleaver::{Explorer, Life, Place, Protocol, Step, World};

use crate::add::{Add, Lanes, Pair, sum};
use crate::{CPUS, LANES, breaks, holds};

/// A mistake that the laws must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// One word, which goes up and down.
    OneSignedWord,
    /// Reads the downs once, before the ups.
    NoSecondDowns,
    /// Takes the pair of every lane, as a reset of sums does.
    TakenInPairs,
}

/// How often a taker looks, before it leaves the gauge alone.
const TRIES: u8 = 2;

/// What the threads share; the truth is for the laws.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    lanes: Lanes,
    /// What went up and down so far, on whatever lane.
    truth: Pair,
}

/// Passes over the lanes: the word that each adds up, and what they gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reader {
    passes: &'static [usize],
    pass: usize,
    lane: usize,
    sums: [i8; 3],
    /// The gauge at the first and the last load of the ups.
    began: i8,
    ended: i8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Frame {
    /// Goes up and down in turn.
    User {
        done: usize,
        add: Add,
    },
    Reader(Reader),
    Taker(Taker),
}

/// Takes a gauge that only one user counts on, so that it was 0 or 1 at any time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Taker {
    reader: Reader,
    tries: u8,
    taken: Option<i8>,
}

/// So many ups and downs of each user, in turn.
struct Gauge {
    users: Vec<usize>,
    takes: bool,
    flaw: Option<Flaw>,
}

impl Gauge {
    fn n(&self, done: usize) -> Pair {
        match (done % 2, self.flaw) {
            (0, _) => [1, 0],
            (_, Some(Flaw::OneSignedWord)) => [-1, 0],
            _ => [0, 1],
        }
    }

    fn passes(&self) -> &'static [usize] {
        match self.flaw {
            Some(Flaw::OneSignedWord) => &[0],
            Some(Flaw::NoSecondDowns) => &[1, 0],
            _ => &[1, 0, 1],
        }
    }
}

fn value(truth: Pair) -> i8 {
    truth[0] - truth[1]
}

impl Taker {
    /// Reads downs, ups, downs, and takes the difference if the downs stood still: then it is one that
    /// there was. Or loads pairs. Whether it has ended.
    fn step(&mut self, pairs: bool, memory: &Memory) -> bool {
        let reader = &mut self.reader;
        if pairs {
            let [ups, downs] = memory.lanes[reader.lane];
            reader.sums[0] += ups - downs;
            reader.lane += 1;
            if reader.lane == LANES {
                self.taken = Some(reader.sums[0]);
            }
            return self.taken.is_some();
        }
        if !reader.step(memory) {
            return false;
        }
        self.tries += 1;
        let [before, ups, after] = reader.sums;
        if before == after {
            self.taken = Some(ups - before);
        }
        *reader = Reader::new(reader.passes);
        self.taken.is_some() || self.tries == TRIES
    }
}

impl Reader {
    fn new(passes: &'static [usize]) -> Self {
        Reader {
            passes,
            pass: 0,
            lane: 0,
            sums: [0; 3],
            began: 0,
            ended: 0,
        }
    }

    /// Loads one word. Whether it was the last.
    fn step(&mut self, memory: &Memory) -> bool {
        let word = self.passes[self.pass];
        if word == 0 && self.lane == 0 {
            self.began = value(memory.truth);
        }
        self.sums[self.pass] += memory.lanes[self.lane][word];
        self.lane += 1;
        if self.lane < LANES {
            return false;
        }
        if word == 0 {
            self.ended = value(memory.truth);
        }
        (self.lane, self.pass) = (0, self.pass + 1);
        self.pass == self.passes.len()
    }

    fn check(&self) -> Result<(), String> {
        let (low, high) = match self.passes.len() {
            1 => (self.sums[0], self.sums[0]),
            2 => (self.sums[1] - self.sums[0], self.sums[1] - self.sums[0]),
            _ => (self.sums[1] - self.sums[2], self.sums[1] - self.sums[0]),
        };
        let (began, ended) = (self.began, self.ended);
        if self.passes.len() == 1 {
            return match (0..=1).contains(&low) {
                true => Ok(()),
                false => Err(format!("gauge: read as {low}, was always 0 or 1")),
            };
        }
        if low > ended || high < began {
            return Err(format!(
                "gauge: read as {low}..={high}, was {began} at the ups' first load and {ended} at \
                 their last"
            ));
        }
        Ok(())
    }
}

impl Protocol for Gauge {
    type Memory = Memory;
    type Frame = Frame;

    fn start(&self) -> (Memory, Vec<Frame>) {
        let memory = Memory {
            lanes: Lanes::default(),
            truth: [0; 2],
        };
        let user = |_: &usize| Frame::User {
            done: 0,
            add: Add::Load,
        };
        let mut frames: Vec<Frame> = self.users.iter().map(user).collect();
        let reader = Reader::new(self.passes());
        frames.push(match self.takes {
            false => Frame::Reader(reader),
            true => Frame::Taker(Taker {
                reader,
                tries: 0,
                taken: None,
            }),
        });
        (memory, frames)
    }

    fn step(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Step {
        let last = match frame {
            Frame::User { done, add } => {
                let committed = add.step(self.n(*done), at.cpu, &mut memory.lanes);
                if committed {
                    memory.truth[*done % 2] += 1;
                    *done += 1;
                }
                *done == self.users[at.thread]
            }
            Frame::Reader(reader) => reader.step(memory),
            Frame::Taker(taker) => taker.step(self.flaw == Some(Flaw::TakenInPairs), memory),
        };
        match last {
            true => Step::Finished,
            false => Step::Ran,
        }
    }

    fn in_section(&self, frame: &Frame) -> bool {
        matches!(frame, Frame::User { add, .. } if add.in_section())
    }

    fn abort(&self, frame: &mut Frame) {
        if let Frame::User { add, .. } = frame {
            add.abort();
        }
    }

    fn check(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let up_and_down = sum(&world.memory.lanes);
        if self.flaw != Some(Flaw::OneSignedWord) && up_and_down != world.memory.truth {
            return Err(format!("lost: the lanes hold {up_and_down:?}"));
        }
        for thread in world.threads.iter().filter(|t| t.life == Life::Finished) {
            match &thread.frames[0] {
                Frame::Reader(reader) => reader.check()?,
                Frame::Taker(Taker {
                    taken: Some(taken), ..
                }) if !(0..=1).contains(taken) => {
                    return Err(format!(
                        "taken: {taken} of a gauge that was 0 or 1; it is off by that for ever"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn explorer() -> Explorer {
    Explorer::new(CPUS).forbid_cycles().kills(1)
}

fn gauge(users: &[usize], takes: bool, flaw: Option<Flaw>) -> Gauge {
    Gauge {
        users: users.to_vec(),
        takes,
        flaw,
    }
}

#[test]
fn bounds() {
    for users in [&[4][..], &[2, 1], &[2, 2]] {
        let name = format!("gauge, ups and downs of users: {users:?}");
        holds(&name, &explorer(), &gauge(users, false, None));
    }
}

fn mutant(flaw: Flaw, takes: bool, law: &str) {
    let model = gauge(&[4], takes, Some(flaw));
    breaks(&format!("gauge, {flaw:?}"), &explorer(), &model, law);
}

#[test]
fn one_signed_word() {
    mutant(Flaw::OneSignedWord, false, "gauge: read as");
}

#[test]
fn no_second_downs() {
    mutant(Flaw::NoSecondDowns, false, "gauge: read as 1..=1, was 0");
}

/// A gauge is not taken as other pairs are: a scan of the lanes finds ups and downs of different
/// moments, whose difference is none that there was.
#[test]
fn gauges_are_taken_while_downs_stand_still() {
    holds("gauge, taken", &explorer(), &gauge(&[4], true, None));
    mutant(Flaw::TakenInPairs, true, "taken: -1");
}
