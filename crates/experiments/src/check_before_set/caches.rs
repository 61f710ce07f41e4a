//! The caches of this machine, as far as the system tells.

use countersink_harness::machine::Machine;

/// A cache that data goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Its level, 1 being the nearest.
    pub level: u32,
    /// Its size.
    pub bytes: usize,
}

/// The caches of the first CPU that data goes through; none where the system does not tell.
pub fn caches() -> Vec<Cache> {
    let caches = Machine::detect().caches;
    let of_data = caches
        .iter()
        .filter(|cache| cache.kind.as_deref() != Some("Instruction"));
    let known = of_data.filter_map(|cache| {
        Some(Cache {
            level: cache.level?,
            bytes: bytes(cache.size.as_deref()?)?,
        })
    });
    known.filter(|cache| cache.bytes > 0).collect()
}

/// `32K`, `1024K`, `32M`.
fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = match text.chars().last()? {
        'K' => (text.strip_suffix('K')?, 1 << 10),
        'M' => (text.strip_suffix('M')?, 1 << 20),
        _ => (text, 1),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("32K"), Some(32 << 10));
        assert_eq!(bytes("8M"), Some(8 << 20));
        assert_eq!(bytes("64"), Some(64));
        assert_eq!(bytes("x"), None);
        assert_eq!(bytes(""), None);
    }
}
