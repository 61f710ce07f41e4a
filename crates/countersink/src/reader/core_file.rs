//! Regions in core files: ELF, 64 bits.
//!
//! A core file has the mappings that were dumped as segments (`PT_LOAD`), and a note (`NT_FILE`) that
//! says which files were mapped where.

use std::io;
use std::sync::Arc;

use super::error::OpenError;
use super::header::Fields;
use super::os::Holder;
use super::snapshot::Region;
use super::source::{Piece, Pieces, Source, fill};

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const TYPE_CORE: u16 = 4;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_FILE: u32 = 0x4649_4c45;
/// More mappings than Linux lets a process have, unless it is told to.
const MOST_HEADERS: u64 = 1 << 20;
/// More bytes of notes than a process with all those mappings of files has.
const MOST_NOTES: u64 = 64 << 20;
/// More regions than a process has versions of the library.
const MOST_REGIONS: usize = 64;

impl Source for Arc<dyn Source> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_ref().read_at(buffer, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.as_ref().next_data(offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.as_ref().size()
    }
}

/// Memory that was dumped.
#[derive(Clone, Copy, Debug)]
struct Dumped {
    address: u64,
    at: u64,
    bytes: u64,
}

/// A part of a file that was mapped.
#[derive(Clone, Debug)]
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    name: Vec<u8>,
}

/// The regions in a core file.
pub(super) fn regions(source: Box<dyn Source>, origin: &str) -> Result<Vec<Region>, OpenError> {
    let source: Arc<dyn Source> = Arc::from(source);
    let no_core = |why: &str| OpenError::NoCore {
        origin: origin.to_owned(),
        why: why.to_owned(),
    };
    let read = parse(source.as_ref()).map_err(|error| OpenError::Open {
        origin: origin.to_owned(),
        error,
    })?;
    let (dumped, mapped) = read.map_err(no_core)?;
    let mut regions = Vec::new();
    let mut first_error = None;
    for (name, pieces) in pieces(&dumped, &mapped).into_iter().take(MOST_REGIONS) {
        if pieces.iter().all(|piece| piece.kept == 0) {
            first_error.get_or_insert_with(|| no_core(&left_out(name)));
            continue;
        }
        let source = Box::new(Pieces::new(Arc::clone(&source), pieces));
        match Region::new(source, origin.to_owned(), None, Holder::Nobody) {
            Ok(region) => regions.push(region),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        _ if !regions.is_empty() => Ok(regions),
        Some(error) => Err(error),
        None => Err(no_core("is a core file without a region")),
    }
}

/// Why nothing of a region was dumped.
fn left_out(name: &[u8]) -> String {
    if name.starts_with(b"/memfd:") {
        return "does not hold the region: it was dumped without shared anonymous memory, \
                bit 1 of /proc/PID/coredump_filter"
            .to_owned();
    }
    let name = String::from_utf8_lossy(name);
    format!("does not hold the region: it is in the file {name}, which core files leave out")
}

type Parsed = (Vec<Dumped>, Vec<Mapped>);

/// Reads the headers; the inner error says what is wrong with the file.
fn parse(source: &dyn Source) -> io::Result<Result<Parsed, &'static str>> {
    let mut bytes = [0; HEADER];
    let there = fill(source, &mut bytes, 0)?;
    let fields = Fields(&bytes);
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if there < HEADER || !bytes.starts_with(b"\x7fELF") {
        return Ok(Err("is no core file"));
    }
    if bytes[4..6] != [2, order] || fields.u16(16) != TYPE_CORE {
        return Ok(Err(
            "is no core file of 64 bits with this machine's byte order",
        ));
    }
    let (offset, section_offset) = (fields.u64(32), fields.u64(40));
    let mut count = u64::from(fields.u16(56));
    if count == 0xffff {
        // Too many for the field: the first section header has the number.
        let mut section = [0; 64];
        fill(source, &mut section, section_offset)?;
        count = u64::from(Fields(&section).u32(44));
    }
    if usize::from(fields.u16(54)) != PROGRAM_HEADER || count > MOST_HEADERS {
        return Ok(Err("is a core file with impossible program headers"));
    }
    // At most 56 MiB.
    let mut headers = Vec::new();
    let mut chunk = vec![0; PROGRAM_HEADER * 1024];
    let mut at = offset;
    while (headers.len() as u64) < count {
        let left = (count - headers.len() as u64).min(1024) as usize * PROGRAM_HEADER;
        if fill(source, &mut chunk[..left], at)? < left {
            return Ok(Err("is a core file that was cut off"));
        }
        headers.extend(
            chunk[..left]
                .chunks_exact(PROGRAM_HEADER)
                .map(ProgramHeader::of),
        );
        at = at.saturating_add(left as u64);
    }
    let loads = headers.iter().filter(|header| header.kind == PT_LOAD);
    let dumped = loads.map(|header| Dumped {
        address: header.address,
        at: header.offset,
        bytes: header.file_size.min(header.memory_size),
    });
    let mut dumped: Vec<Dumped> = dumped.collect();
    dumped.sort_by_key(|load| load.address);
    let mut mapped = Vec::new();
    for header in headers
        .iter()
        .filter(|header| header.kind == PT_NOTE)
        .take(4)
    {
        let end = header
            .offset
            .saturating_add(header.file_size)
            .min(source.size()?);
        let length = end.saturating_sub(header.offset);
        if length > MOST_NOTES {
            return Ok(Err("is a core file with impossible notes"));
        }
        let mut notes = vec![0; usize::try_from(length).unwrap_or(0)];
        let there = fill(source, &mut notes, header.offset)?;
        notes.truncate(there);
        mapped.extend(files(&notes).unwrap_or_default());
    }
    Ok(Ok((dumped, mapped)))
}

struct ProgramHeader {
    kind: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
}

impl ProgramHeader {
    fn of(bytes: &[u8]) -> Self {
        let fields = Fields(bytes);
        ProgramHeader {
            kind: fields.u32(0),
            offset: fields.u64(8),
            address: fields.u64(16),
            file_size: fields.u64(32),
            memory_size: fields.u64(40),
        }
    }
}

/// The mapped files that the notes tell of, if they have names of regions.
fn files(mut notes: &[u8]) -> Option<Vec<Mapped>> {
    loop {
        let fields = Fields(notes.get(..12)?);
        let (name, length) = (fields.u32(0) as usize, fields.u32(4) as usize);
        let start = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let end = start.checked_add(length)?;
        if fields.u32(8) == NT_FILE && notes.get(12..)?.starts_with(b"CORE\0") {
            return mapped_files(notes.get(start..end)?);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

/// Number of files, page size, three words for each file, then their names.
fn mapped_files(note: &[u8]) -> Option<Vec<Mapped>> {
    let fields = Fields(note);
    let (count, page) = (usize::try_from(fields.u64(0)).ok()?, fields.u64(8));
    let table = note.get(16..)?;
    let (table, names) = table.split_at_checked(count.checked_mul(24)?)?;
    let names = names.split(|byte| *byte == 0);
    let mut mapped = Vec::new();
    for (numbers, name) in table.chunks_exact(24).zip(names) {
        let fields = Fields(numbers);
        let plain = name.strip_suffix(b" (deleted)").unwrap_or(name);
        if plain == b"/memfd:countersink" || plain.ends_with(b".countersink") {
            mapped.push(Mapped {
                start: fields.u64(0),
                end: fields.u64(8),
                offset: fields.u64(16).checked_mul(page)?,
                name: name.to_owned(),
            });
        }
    }
    Some(mapped)
}

/// The name and the pieces of each region, from what was dumped, by address. A region's mappings follow each other
/// in memory and in the file.
fn pieces<'a>(dumped: &[Dumped], mapped: &'a [Mapped]) -> Vec<(&'a [u8], Vec<Piece>)> {
    let mut regions: Vec<(&[u8], Vec<Piece>)> = Vec::new();
    let mut previous: Option<&Mapped> = None;
    for file in mapped {
        let Some(length) = file.end.checked_sub(file.start) else {
            continue;
        };
        let follows = previous.is_some_and(|previous| {
            let is_next = previous.end == file.start && previous.name == file.name;
            is_next
                && previous.offset.checked_add(previous.end - previous.start) == Some(file.offset)
        });
        previous = Some(file);
        if !follows {
            regions.push((&file.name, Vec::new()));
        }
        let kept = dumped.binary_search_by_key(&file.start, |load| load.address);
        let kept = kept.ok().and_then(|at| dumped.get(at));
        if let Some((_, region)) = regions.last_mut() {
            region.push(Piece {
                start: file.offset,
                length,
                at: kept.map_or(0, |load| load.at),
                kept: kept.map_or(0, |load| load.bytes),
            });
        }
    }
    regions
}
