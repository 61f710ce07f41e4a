//! Changes in a few places, so that inputs stay short and get behind the checks of what they leave alone.

use std::ops::Range;

/// The most changes of an input.
const MOST: usize = 64;

/// Reads an input from its beginning.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<usize> {
        let bytes = self.take(N)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    }
}

/// Changes bytes as an input says, which is a sequence of
///
/// - part (1 byte), offset in it (2 bytes), length (1 byte), and as many bytes to put there;
/// - or 255, and where the bytes are to end (3 bytes).
///
/// All numbers are taken modulo what is possible. What is left of an incomplete change is ignored.
pub fn change(bytes: &mut Vec<u8>, parts: &[Range<usize>], input: &[u8]) {
    let mut input = Input(input);
    for _ in 0..MOST {
        let done = match input.number::<1>() {
            Some(255) => truncate(bytes, &mut input),
            Some(part) => put(bytes, &parts[part % parts.len()], &mut input),
            None => None,
        };
        if done.is_none() {
            break;
        }
    }
}

fn truncate(bytes: &mut Vec<u8>, input: &mut Input) -> Option<()> {
    let length = input.number::<3>()? % (bytes.len() + 1);
    bytes.truncate(length);
    Some(())
}

fn put(bytes: &mut [u8], part: &Range<usize>, input: &mut Input) -> Option<()> {
    let at = part.start + input.number::<2>()? % part.len();
    let length = input.number::<1>()? % 17;
    let new = input.take(length)?;
    if let Some(place) = bytes.get_mut(at..at + length) {
        place.copy_from_slice(new);
    }
    Some(())
}
