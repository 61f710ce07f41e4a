//! What a region is read from.

use std::fmt::Debug;
use std::io;
use std::sync::atomic::{Ordering::Acquire, fence};

/// Bytes at offsets, which may change or vanish at any time.
pub(super) trait Source: Debug + Send + Sync {
    /// Copies bytes from an offset on, and says how many. Fewer than asked for, or none, where the
    /// rest is not there: because it ends, or because it was not kept.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Where the next bytes after an offset are that may be other than zero. What is not there
    /// counts as such. `None`: zeros to the end.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }

    /// Where it ends.
    fn size(&self) -> io::Result<u64>;

    /// The file, if it is one that could be written to.
    fn file(&self) -> Option<&std::fs::File> {
        None
    }
}

/// Fills as much of a buffer as is there, and says how much that is.
pub(super) fn fill(source: &dyn Source, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let Some(at) = offset.checked_add(done as u64) else {
            break;
        };
        match source.read_at(rest, at) {
            Ok(0) => break,
            Ok(bytes) => done += bytes.min(rest.len()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // What is read next must not be older than this. The kernel copies with loads of this thread,
    // which this fence orders; it pairs with the releases of those who count and reset.
    fence(Acquire);
    Ok(done)
}

/// A region in memory.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Source for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(start..).unwrap_or_default();
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// A part of a region, and where it is in something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where in the region it begins.
    pub(super) start: u64,
    /// How long it is there.
    pub(super) length: u64,
    /// Where in the other it begins.
    pub(super) at: u64,
    /// How much of it is in the other.
    pub(super) kept: u64,
}

/// A region that lies in pieces in something else: a core file, or a process's memory.
#[derive(Debug)]
pub(super) struct Pieces<S> {
    inner: S,
    /// Ascending, without overlaps.
    pieces: Vec<Piece>,
}

impl<S: Source> Pieces<S> {
    /// Pieces in any order. Those that overlap an earlier one are left out.
    pub(super) fn new(inner: S, mut pieces: Vec<Piece>) -> Self {
        pieces.sort_by_key(|piece| piece.start);
        let mut end = 0;
        pieces.retain(|piece| {
            let follows = piece.start >= end;
            let ends = piece.start.checked_add(piece.length);
            let kept = follows && ends.is_some();
            if let (true, Some(at)) = (follows, ends) {
                end = at;
            }
            kept
        });
        Pieces { inner, pieces }
    }

    /// The piece that an offset is in, and how far in.
    fn find(&self, offset: u64) -> Option<(&Piece, u64)> {
        let after = self.pieces.partition_point(|piece| piece.start <= offset);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        let within = offset - piece.start;
        (within < piece.length.min(piece.kept)).then_some((piece, within))
    }
}

impl<S: Source> Source for Pieces<S> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some((piece, within)) = self.find(offset) else {
            return Ok(0);
        };
        let there = piece.length.min(piece.kept) - within;
        let length = buffer
            .len()
            .min(usize::try_from(there).unwrap_or(usize::MAX));
        match piece.at.checked_add(within) {
            Some(at) => self.inner.read_at(&mut buffer[..length], at),
            None => Ok(0),
        }
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        let Some((piece, within)) = self.find(offset) else {
            return Ok(Some(offset));
        };
        let Some(at) = piece.at.checked_add(within) else {
            return Ok(Some(offset));
        };
        let end = piece.length.min(piece.kept);
        let next = match self.inner.next_data(at)? {
            Some(data) => data.saturating_sub(piece.at).clamp(within, end),
            None => end,
        };
        // The end of a piece counts as data, so that whoever asks looks into the next one.
        Ok(Some(piece.start.saturating_add(next)))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self
            .pieces
            .last()
            .map_or(0, |piece| piece.start.saturating_add(piece.length)))
    }
}
