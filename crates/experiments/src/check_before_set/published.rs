//! The seed's programs as they were posted, faults included.
//!
//! Nothing is pinned, since their call fails, and nothing starts together; what is written changes with each pass; and the loops touch
//! an eighth of an eighth of the memory that they allocate in the first program, and all of it in the second.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// A program, as it is compiled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// What it is called here.
    pub name: &'static str,
    /// What was published for it: seconds without and with the test.
    pub published: [f64; 2],
    /// Words that it touches, and how often.
    words: usize,
    times: u64,
    reader: bool,
}

/// The programs whose results were published, without and with `CHECK_BEFORE_SET`. Of the second, which of its two sizes was run was not
/// said; its time fits the first.
pub const PROGRAMS: [Program; 3] = [
    Program {
        name: "one thread",
        published: [21.5351, 21.9834],
        words: (1 << 30) / 64 / 8,
        times: 10_000,
        reader: false,
    },
    Program {
        name: "one thread, CACHE_HOT",
        published: [14.9987, 29.9010],
        words: (2 << 20) / 64 / 8,
        times: 10_000_000,
        reader: false,
    },
    Program {
        name: "two threads, writer",
        published: [8.672_198_335, 10.799_746_531],
        words: (1 << 20) / 8,
        times: 10_000,
        reader: true,
    },
];

/// What was published for the reader of the last.
pub const PUBLISHED_READER: [f64; 2] = [8.426_228_173, 7.537_036_819];

impl Program {
    /// How much memory its loop touches.
    pub fn bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }
}

/// The seconds that a program took: of its writer and, where there is one, its reader.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// Of the writer.
    pub writer: f64,
    /// Of the reader.
    pub reader: Option<f64>,
}

/// Runs a program once, without and with the test: minutes.
///
/// # Errors
/// If the thread could not be started.
pub fn run(program: &Program) -> Result<[Took; 2], String> {
    Ok([once(program, false)?, once(program, true)?])
}

fn once(program: &Program, checked: bool) -> Result<Took, String> {
    let words: Vec<AtomicU64> = (0..program.words).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let read = || {
            let start = Instant::now();
            for _ in 0..program.times {
                words.iter().for_each(|word| {
                    black_box(word.load(Relaxed));
                });
            }
            start.elapsed().as_secs_f64()
        };
        let reader = match program.reader {
            true => Some(
                std::thread::Builder::new()
                    .spawn_scoped(scope, read)
                    .map_err(|error| error.to_string())?,
            ),
            false => None,
        };
        let writer = match checked {
            false => write::<false>(&words, program.times),
            true => write::<true>(&words, program.times),
        };
        let reader = match reader.map(|reader| reader.join()) {
            Some(Ok(seconds)) => Some(seconds),
            Some(Err(_)) => return Err("the reader panicked".to_owned()),
            None => None,
        };
        Ok(Took { writer, reader })
    })
}

#[inline(never)]
fn write<const CHECKED: bool>(words: &[AtomicU64], times: u64) -> f64 {
    let start = Instant::now();
    for times in (0..times).rev() {
        for word in words {
            if !CHECKED || word.load(Relaxed) != times {
                word.store(times, Relaxed);
            }
        }
    }
    start.elapsed().as_secs_f64()
}
