//! Memory that is there before it is measured.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Words in lines of eight, populated, and locked where that is allowed.
pub(super) struct Words {
    words: Vec<AtomicU64>,
    /// Why it is not locked.
    unlocked: Option<String>,
}

/// Words of one size at a time: set-ups of the same size follow each other, and populating takes longer than a sample.
#[derive(Default)]
pub(super) struct Memory {
    words: Option<(usize, Words)>,
}

impl Memory {
    /// So many bytes, with what was last written.
    pub(super) fn of(&mut self, bytes: usize) -> Result<&Words, String> {
        if self.words.as_ref().is_none_or(|(size, _)| *size != bytes) {
            // First, so that there are never two.
            self.words = None;
            self.words = Some((bytes, Words::new(bytes)?));
        }
        match &self.words {
            Some((_, words)) => Ok(words),
            None => Err("there is not so much memory".to_owned()),
        }
    }
}

/// A cache line's.
pub(super) const WORDS_OF_LINE: usize = 8;

impl Words {
    pub(super) fn new(bytes: usize) -> Result<Self, String> {
        let count = bytes / size_of::<AtomicU64>();
        let mut words = Vec::new();
        words
            .try_reserve_exact(count + WORDS_OF_LINE)
            .map_err(|_| "there is not so much memory".to_owned())?;
        // Written, so that every page is there.
        words.extend((0..count + WORDS_OF_LINE).map(|_| AtomicU64::new(1)));
        words.iter().for_each(|word| word.store(0, Relaxed));
        let unlocked = lock(&words).err();
        Ok(Words { words, unlocked })
    }

    /// All words, from the beginning of a line on.
    pub(super) fn get(&self) -> &[AtomicU64] {
        let line = WORDS_OF_LINE * size_of::<AtomicU64>();
        let off = self.words.as_ptr().addr() % line / size_of::<AtomicU64>();
        let start = (WORDS_OF_LINE - off) % WORDS_OF_LINE;
        let count = self.words.len() - WORDS_OF_LINE;
        &self.words[start..start + count]
    }

    pub(super) fn note(&self) -> Option<String> {
        self.unlocked.clone()
    }
}

#[cfg(unix)]
fn lock(words: &[AtomicU64]) -> Result<(), String> {
    // SAFETY: memory of ours; locking changes nothing in it.
    let result = unsafe { libc::mlock(words.as_ptr().cast(), size_of_val(words)) };
    match result {
        0 => Ok(()),
        _ => Err(format!(
            "memory is populated but not locked: {}",
            std::io::Error::last_os_error()
        )),
    }
}

#[cfg(not(unix))]
fn lock(_: &[AtomicU64]) -> Result<(), String> {
    Err("memory is populated but not locked: this system is not asked".to_owned())
}

#[cfg(unix)]
impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::munlock(self.words.as_ptr().cast(), size_of_val(&*self.words)) };
    }
}
