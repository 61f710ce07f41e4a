//! A region by the documented format alone, for what the library's reader does not tell, and for readers
//! that do it wrong.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A region's file, open.
#[derive(Debug)]
pub(crate) struct Raw {
    file: File,
    writable: bool,
}

/// An entry as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) life: u64,
    pub(crate) segment: u64,
    pub(crate) word: u64,
    pub(crate) name: String,
}

impl Entry {
    pub(crate) fn is_ready(&self) -> bool {
        self.life & 0xff == 2
    }
}

impl Raw {
    /// This process's memfd.
    pub(crate) fn own() -> Self {
        Self::open(false)
    }

    /// The same, to write to.
    pub(crate) fn own_writable() -> Self {
        Self::open(true)
    }

    fn open(writable: bool) -> Self {
        let descriptors = std::fs::read_dir("/proc/self/fd").expect("descriptors");
        let path = descriptors
            .map(|entry| entry.expect("a descriptor").path())
            .find(|path| {
                let target = std::fs::read_link(path);
                target.is_ok_and(|target| target.as_os_str() == "/memfd:countersink (deleted)")
            })
            .expect("a region");
        let file = File::options().read(true).write(writable).open(path);
        Raw {
            file: file.expect("the region"),
            writable,
        }
    }

    pub(crate) fn u64(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file
            .read_exact_at(&mut bytes, offset)
            .expect("inside the region");
        u64::from_ne_bytes(bytes)
    }

    fn u32(&self, offset: u64) -> u64 {
        let mut bytes = [0; 4];
        self.file
            .read_exact_at(&mut bytes, offset)
            .expect("inside the region");
        u64::from(u32::from_ne_bytes(bytes))
    }

    /// Writes a word, as a thread that counts would.
    pub(crate) fn put(&self, offset: u64, value: u64) {
        assert!(self.writable);
        self.file
            .write_all_at(&value.to_ne_bytes(), offset)
            .expect("inside the region");
    }

    pub(crate) fn entries_used(&self) -> u64 {
        self.u64(1024)
    }

    pub(crate) fn words_used(&self) -> u64 {
        self.u64(1032)
    }

    /// Entries that are not used again because their process forked.
    pub(crate) fn kept(&self) -> u64 {
        self.u64(1064)
    }

    pub(crate) fn entry(&self, number: u64) -> Entry {
        let offset = self.u64(64) + 512 * number;
        let mut bytes = [0; 512];
        self.file
            .read_exact_at(&mut bytes, offset)
            .expect("inside the region");
        let u32 = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let length = u16::from_ne_bytes(bytes[36..38].try_into().expect("2 bytes"));
        let name = &bytes[64..64 + usize::from(length)];
        Entry {
            number,
            life: u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes")),
            segment: u64::from(u32(16)),
            word: u64::from(u32(20)),
            name: String::from_utf8_lossy(name).into_owned(),
        }
    }

    /// An entry's life, as it is now.
    pub(crate) fn life(&self, number: u64) -> u64 {
        self.u64(self.u64(64) + 512 * number)
    }

    /// All entries that were handed out.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        (0..self.entries_used()).map(|n| self.entry(n)).collect()
    }

    /// Where a word of an entry lies; lane 0 is the shared one, 1 the bias, 2 that of CPU 0.
    pub(crate) fn place(&self, entry: &Entry, word: u64, lane: u64) -> u64 {
        self.u64(72) + entry.segment * self.u64(80) + lane * 65_536 + 8 * (entry.word + word)
    }

    /// Bias, then the other lanes: of a word that nobody takes meanwhile.
    pub(crate) fn sum(&self, entry: &Entry, word: u64) -> u64 {
        let lanes = [1, 0].into_iter().chain(2..2 + self.u32(28));
        lanes.fold(0, |sum: u64, lane| {
            sum.wrapping_add(self.u64(self.place(entry, word, lane)))
        })
    }
}
