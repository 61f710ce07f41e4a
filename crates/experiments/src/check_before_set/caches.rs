//! The caches of this machine, as far as the system tells.

use std::path::Path;

/// A cache that data goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Its level, 1 being the nearest.
    pub level: u32,
    /// Its size.
    pub bytes: usize,
}

/// The caches of the first CPU; none where the system does not tell.
pub fn caches() -> Vec<Cache> {
    read(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

fn read(folder: &Path) -> Vec<Cache> {
    let entry = |index: u32| {
        let text = |name: &str| {
            let path = folder.join(format!("index{index}")).join(name);
            std::fs::read_to_string(path)
                .ok()
                .map(|text| text.trim().to_owned())
        };
        (text("type")? != "Instruction").then_some(())?;
        Some(Cache {
            level: text("level")?.parse().ok()?,
            bytes: bytes(&text("size")?)?,
        })
    };
    (0..16)
        .filter_map(entry)
        .filter(|cache| cache.bytes > 0)
        .collect()
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
