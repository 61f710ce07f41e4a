//! Short texts without allocation, for where a signal handler may have to write them.

use core::ffi::CStr;
use core::fmt::{self, Write};

/// At most `N - 1` bytes, and a zero. What does not fit is cut off.
#[derive(Clone, Copy)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) fn empty() -> Self {
        Text {
            bytes: [0; N],
            length: 0,
        }
    }

    pub(crate) fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self::empty();
        text.append(arguments);
        text
    }

    pub(crate) fn append(&mut self, arguments: fmt::Arguments<'_>) {
        // Writing to a text does not fail.
        let _ = self.write_fmt(arguments);
    }

    pub(crate) fn push(&mut self, byte: u8) {
        // The last byte stays zero.
        if let Some(place) = self.bytes[..N - 1].get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// All bytes, the rest zeros.
    pub(crate) fn padded(&self) -> &[u8; N] {
        &self.bytes
    }

    #[allow(dead_code, reason = "not every system opens files here")]
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.push(byte));
        Ok(())
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(core::str::from_utf8(self.as_bytes()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let text = Text::<5>::of(format_args!("{}-{}", 12, 345));
        assert_eq!(text.as_bytes(), b"12-3");
        assert_eq!(text.padded(), b"12-3\0");
        assert_eq!(text.as_c_str(), c"12-3");
        assert_eq!(text.to_string(), "12-3");
    }
}
