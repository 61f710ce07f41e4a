//! This program's own functions, as instructions.

use anyhow::{Context, bail};
use object::{Object, ObjectSection, ObjectSymbol};

/// One instruction.
pub(super) struct Line {
    /// Bytes from the start of the function.
    pub(super) at: u64,
    pub(super) bytes: usize,
    pub(super) text: String,
}

/// The instructions of the function at an address of this process.
pub(super) fn function(address: usize) -> anyhow::Result<Vec<Line>> {
    let bytes = std::fs::read(std::env::current_exe()?)?;
    let file = object::File::parse(&*bytes)?;
    // What is mapped is the file moved by as much as this function is.
    let anchor = function as *const () as u64;
    let symbols = || file.symbols().filter(|symbol| symbol.size() > 0);
    let own = symbols()
        .find(|symbol| {
            symbol
                .name()
                .is_ok_and(|name| name.contains("disassembly8function"))
        })
        .context("this program's symbols were removed")?;
    let moved = anchor.wrapping_sub(own.address());
    let start = (address as u64).wrapping_sub(moved);
    let symbol = symbols()
        .find(|symbol| symbol.address() == start)
        .context("it has no symbol")?;
    let section = file.section_by_index(symbol.section_index().context("no section")?)?;
    let code = section
        .data_range(start, symbol.size())?
        .context("its code is not in the file")?;
    decode(code)
}

#[cfg(target_arch = "x86_64")]
fn decode(code: &[u8]) -> anyhow::Result<Vec<Line>> {
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    let mut formatter = IntelFormatter::new();
    let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let line = |instruction| {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        Line {
            at: instruction.ip(),
            bytes: instruction.len(),
            text,
        }
    };
    let lines: Vec<_> = decoder.into_iter().map(line).collect();
    if lines.is_empty() {
        bail!("there is no code");
    }
    Ok(lines)
}

#[cfg(not(target_arch = "x86_64"))]
fn decode(_: &[u8]) -> anyhow::Result<Vec<Line>> {
    bail!("instructions of this architecture are not known")
}
