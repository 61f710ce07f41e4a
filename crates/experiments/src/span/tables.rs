//! The two tables of the seed, with the sizes of x86-64: 4 KiB pages, a 64-byte `struct page` for each,
//! sections of 128 MiB.

use super::instructions::evict;

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;
/// Pages of a section.
const SECTION_PAGES: usize = 1 << 15;
/// Sections of the memory that the tables describe.
const SECTIONS: usize = 8;
/// All pages.
const PAGES: usize = SECTIONS * SECTION_PAGES;
/// Bytes of the memory that the tables describe, all of it imagined.
pub(super) const MEMORY: usize = PAGES * PAGE;
/// Where it begins: the kernel's direct mapping, at an address that 32 bits can hold too.
pub(super) const PAGE_OFFSET: usize = 0xc000_0000;

/// What the kernel keeps of a page: a cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct Page {
    /// Whether it is part of a larger one; none is.
    flags: usize,
    /// The cache that its objects are from; here the page's number, which tells the pages apart.
    slab: usize,
}

impl Page {
    /// `compound_head(page)->slab`, for which kfree looks the page up.
    #[inline(always)]
    pub(super) fn slab(&self) -> usize {
        self.flags | self.slab
    }
}

fn pages(numbers: std::ops::Range<usize>) -> Vec<Page> {
    numbers.map(|slab| Page { flags: 0, slab }).collect()
}

/// An array of a length that the compiler knows, so that an index below it is not checked.
fn array<T, const N: usize>(items: Vec<T>) -> Option<Box<[T; N]>> {
    items.into_boxed_slice().try_into().ok()
}

/// Memory for a way from an address to its page.
pub(super) trait Table: Send + Sync + Sized {
    /// What the variant is called.
    const NAME: &'static str;
    /// What a loop holds in registers; the kernel's tables begin at constant addresses.
    type View<'a>: View
    where
        Self: 'a;
    /// The table with everything in it; `None` never.
    fn new() -> Option<Self>;
    /// The table, to look up.
    fn view(&self) -> Self::View<'_>;
}

/// See [`Table::View`].
pub(super) trait View: Copy {
    /// The page of an address at or above [`PAGE_OFFSET`], wrapping at the end of the memory.
    fn virt_to_page(&self, address: usize) -> &Page;
    /// Moves all lines that the look-up and its result need out of the caches.
    fn evict(&self, address: usize);
}

#[inline(always)]
fn number(address: usize) -> usize {
    address.wrapping_sub(PAGE_OFFSET) / PAGE
}

/// The virtual memmap: one array, so a page's place is arithmetic.
#[derive(Debug)]
pub(super) struct Memmap(Box<[Page; PAGES]>);

/// See [`Memmap`].
#[derive(Clone, Copy, Debug)]
pub(super) struct MemmapView<'a>(&'a [Page; PAGES]);

impl Table for Memmap {
    const NAME: &'static str = "virtual-memmap";
    type View<'a> = MemmapView<'a>;

    fn new() -> Option<Self> {
        array(pages(0..PAGES)).map(Memmap)
    }

    fn view(&self) -> MemmapView<'_> {
        MemmapView(&self.0)
    }
}

impl View for MemmapView<'_> {
    #[inline(always)]
    fn virt_to_page(&self, address: usize) -> &Page {
        &self.0[number(address) % PAGES]
    }

    #[inline(always)]
    fn evict(&self, address: usize) {
        let page = self.virt_to_page(address);
        evict(page);
        // As many as the other table.
        evict(page);
    }
}

/// Sparsemem: a table of sections, each with the map of its pages.
#[derive(Debug)]
pub(super) struct Sparsemem(Box<[Section; SECTIONS]>);

/// See [`Sparsemem`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SparsememView<'a>(&'a [Section; SECTIONS]);

/// The kernel's `struct mem_section`.
#[derive(Debug)]
pub(super) struct Section {
    map: Box<[Page; SECTION_PAGES]>,
    /// Where the kernel has a pointer to bits that no look-up needs.
    _pageblock_flags: usize,
}

impl Table for Sparsemem {
    const NAME: &'static str = "sparsemem";
    type View<'a> = SparsememView<'a>;

    fn new() -> Option<Self> {
        let section = |index| {
            let first = index * SECTION_PAGES;
            Some(Section {
                map: array(pages(first..first + SECTION_PAGES))?,
                _pageblock_flags: 0,
            })
        };
        let sections: Option<Vec<Section>> = (0..SECTIONS).map(section).collect();
        array(sections?).map(Sparsemem)
    }

    fn view(&self) -> SparsememView<'_> {
        SparsememView(&self.0)
    }
}

impl SparsememView<'_> {
    #[inline(always)]
    fn section(&self, number: usize) -> &Section {
        &self.0[number / SECTION_PAGES % SECTIONS]
    }
}

impl View for SparsememView<'_> {
    #[inline(always)]
    fn virt_to_page(&self, address: usize) -> &Page {
        let number = number(address);
        &self.section(number).map[number % SECTION_PAGES]
    }

    #[inline(always)]
    fn evict(&self, address: usize) {
        let section = self.section(number(address));
        evict(self.virt_to_page(address));
        evict(section);
    }
}

/// No table: what a span shows with nothing in it.
#[derive(Debug, Default)]
pub(super) struct Empty(Page);

/// See [`Empty`].
#[derive(Clone, Copy, Debug)]
pub(super) struct EmptyView<'a>(&'a Page);

impl Table for Empty {
    const NAME: &'static str = "empty";
    type View<'a> = EmptyView<'a>;

    fn new() -> Option<Self> {
        Some(Empty::default())
    }

    fn view(&self) -> EmptyView<'_> {
        EmptyView(&self.0)
    }
}

impl View for EmptyView<'_> {
    #[inline(always)]
    fn virt_to_page(&self, _: usize) -> &Page {
        self.0
    }

    #[inline(always)]
    fn evict(&self, _: usize) {
        evict(self.0);
        evict(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_agree_on_every_page() {
        let (flat, sparse) = (Memmap::new(), Sparsemem::new());
        let (flat, sparse) = (flat.expect("a table"), sparse.expect("a table"));
        let (flat, sparse) = (flat.view(), sparse.view());
        for page in 0..PAGES {
            // The first byte, the last, and one in between.
            for within in [0, page % PAGE, PAGE - 1] {
                let address = PAGE_OFFSET + page * PAGE + within;
                let found = [flat.virt_to_page(address), sparse.virt_to_page(address)];
                assert_eq!(found.map(Page::slab), [page; 2]);
            }
        }
    }

    #[test]
    fn pages_and_sections_have_the_seeds_sizes() {
        assert_eq!(size_of::<Page>(), 64);
        assert_eq!(SECTION_PAGES * PAGE, 128 << 20);
        #[cfg(target_pointer_width = "64")]
        assert_eq!(size_of::<Section>(), 16);
    }

    #[test]
    fn what_was_moved_out_of_the_caches_is_still_there() {
        let table = Sparsemem::new().expect("a table");
        let table = table.view();
        let address = PAGE_OFFSET + MEMORY / 3;
        let before = table.virt_to_page(address).slab();
        table.evict(address);
        assert_eq!(table.virt_to_page(address).slab(), before);
    }
}
