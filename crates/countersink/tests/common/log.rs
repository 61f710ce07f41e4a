//! What processes write down of what they do, in memory of its own: the truth that counters are compared
//! with.
//!
//! Each word has one writer at a time, who writes after what it did. So the truth is what is
//! written, and at most one more for each writer that was killed.
#![allow(unsafe_code)]

use core::ptr::null_mut;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Words of one writer, away from those of others.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Line([AtomicU64; 16]);

/// Lines of zeros that this process shares with those it forks.
pub(crate) fn shared(lines: usize) -> &'static [Line] {
    let bytes = lines * size_of::<Line>();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, of whole pages of zeros, that is never removed.
    unsafe {
        let start = libc::mmap(null_mut(), bytes, access, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        core::slice::from_raw_parts(start.cast(), lines)
    }
}

/// Words of zeros, shared in the same way, for logs of many things.
pub(crate) fn words(count: usize) -> &'static [AtomicU64] {
    let lines = shared(count.div_ceil(16));
    // SAFETY: a line is an array of 16 words, without padding.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), count) }
}

impl Line {
    pub(crate) fn word(&self, word: usize) -> &AtomicU64 {
        &self.0[word]
    }

    pub(crate) fn get(&self, word: usize) -> u64 {
        self.0[word].load(Acquire)
    }

    pub(crate) fn set(&self, word: usize, value: u64) {
        self.0[word].store(value, Release);
    }

    /// Adds, as the only one who writes there.
    pub(crate) fn add(&self, word: usize, n: u64) {
        note(&self.0[word], n);
    }
}

/// Adds, as the only one who writes there.
pub(crate) fn note(word: &AtomicU64, n: u64) {
    word.store(word.load(Acquire) + n, Release);
}

/// The sum of a word over lines.
pub(crate) fn total(lines: &[Line], word: usize) -> u64 {
    lines.iter().map(|line| line.get(word)).sum()
}

/// Makes sure that a value is what was logged, or more by what killed writers may not have logged.
#[track_caller]
pub(crate) fn assert_in_bracket(what: &str, value: u64, logged: u64, kills: u64) {
    assert!(
        is_in_bracket(value, logged, kills),
        "{what}: {value}, logged {logged}, {kills} killed"
    );
}

pub(crate) fn is_in_bracket(value: u64, logged: u64, kills: u64) -> bool {
    (logged..=logged + kills).contains(&value)
}
