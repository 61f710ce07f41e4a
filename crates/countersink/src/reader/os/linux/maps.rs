//! Lines of `/proc/PID/maps`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::reader::source::Piece;

/// Longer than any line: a path has at most 4,096 bytes, of which each can be written as 4.
const LONGEST: u64 = 32 * 1024;

/// A part of a file that is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    /// Device and inode.
    pub(super) id: (u64, u64),
    pub(super) name: Vec<u8>,
}

impl Line {
    /// Where this part of the file is in memory.
    pub(super) fn piece(&self) -> Piece {
        let length = self.end.saturating_sub(self.start);
        Piece {
            start: self.offset,
            length,
            at: self.start,
            kept: length,
        }
    }
}

/// The mappings of files whose names are wanted.
pub(super) fn read(path: &Path, wanted: impl Fn(&[u8]) -> bool) -> io::Result<Vec<Line>> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut lines = Vec::new();
    let mut text = Vec::new();
    loop {
        text.clear();
        if reader.by_ref().take(LONGEST).read_until(b'\n', &mut text)? == 0 {
            return Ok(lines);
        }
        lines.extend(parse(&text).filter(|line| wanted(&line.name)));
    }
}

/// `start-end permissions offset major:minor inode name`; `None` for anything else.
fn parse(line: &[u8]) -> Option<Line> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // The name begins with the first slash: what comes before has none.
    let (fields, name) = line.split_at_checked(line.iter().position(|byte| *byte == b'/')?)?;
    let fields = std::str::from_utf8(fields).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = fields.next()?.split_once('-')?;
    let offset = fields.nth(1)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (
        u32::from_str_radix(major, 16).ok()?,
        u32::from_str_radix(minor, 16).ok()?,
    );
    Some(Line {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        id: (
            rustix::fs::makedev(device.0, device.1),
            fields.next()?.parse().ok()?,
        ),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let line = b"7f00-7f10 rw-s 00010000 00:01 2058                       /memfd:countersink (deleted)\n";
        let expected = Line {
            start: 0x7f00,
            end: 0x7f10,
            offset: 0x10000,
            id: (1, 2058),
            name: b"/memfd:countersink (deleted)".to_vec(),
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse(b"7f00-7f10 rw-p 00000000 00:00 0 [heap]\n"), None);
        assert_eq!(parse(b"/"), None);
        assert_eq!(parse(b"7f00 /x"), None);
    }
}
