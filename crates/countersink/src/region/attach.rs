//! Another process's region, for as long as it takes to reset something there.

use core::ffi::CStr;

use countersink_percpu::Slots;

use super::Region;
use super::options::hindrance_text;
use crate::clock;
use crate::os::{self, Hindrance};

/// A region that is mapped here until this is dropped.
#[derive(Debug)]
pub(crate) struct Attached {
    region: Region,
    clock: u32,
}

impl Attached {
    /// Maps the region at a path.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn new(path: &CStr) -> Result<Self, String> {
        let memory = os::join(path).map_err(|hindrance| match hindrance {
            Hindrance::NotJoined => "it is not whole, or others can make it shorter".to_owned(),
            other => hindrance_text(other),
        })?;
        let opened = os::open_part(&memory, 0, memory.layout.entries_offset());
        let Some((mechanism, clock)) = Region::peek(memory).filter(|_| opened) else {
            os::abandon(&memory);
            return Err("it cannot be mapped".to_owned());
        };
        let region = Region::new(memory, mechanism, Hindrance::None);
        let attached = Attached { region, clock };
        clock::ticks_of(attached.clock).ok_or("its clock cannot be read here")?;
        Ok(attached)
    }

    /// Calls a function with the words of an entry and the number of the region's clock, if the entry
    /// is still that of this generation: it is used by us meanwhile, so that it stays so.
    pub(crate) fn with<R>(
        &self,
        number: u32,
        generation: u32,
        act: impl FnOnce(&Slots<'_>, u32) -> Option<R>,
    ) -> Option<R> {
        let region = &self.region;
        let entry = region.entry(number)?;
        let joined = (0..1000).any(|_| {
            let life = entry.life();
            life.generation() == generation && entry.join(life)
        });
        if !joined {
            return None;
        }
        let held = entry.words();
        let inside = region
            .layout()
            .has_words(held.segment, held.first, held.count);
        let result = inside
            .then(|| {
                let segment = region.segment(held.segment)?;
                let words = segment.slots(held.first as usize, held.count as usize)?;
                act(&words, self.clock)
            })
            .flatten();
        region.release(number);
        result
    }

    /// Notes that something was reset.
    pub(crate) fn note_reset(&self) {
        self.region.note_reset();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        os::abandon(self.region.memory());
    }
}
