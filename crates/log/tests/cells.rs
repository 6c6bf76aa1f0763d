//! Containers of cells: read in pieces, read as wholes, and attacked. Whatever is not what was written is an error, whoever
//! reads it in whichever way; and after the first cell that does not open, nobody gets a second guess.

mod bench;

use std::sync::Arc;

use bench::{Bench, CACHE};
use counterfoil_flash::{Device, PageNumber, Read};
use counterfoil_flash_sim::Part;
use counterfoil_log::{
    Cause, ContainerId, Error, Piece, Recovered, SECTOR_PAYLOAD_BYTES, Sealing, Snapshot, View, Writer,
};

const PAGE: usize = 512;
/// No room for pages: all cells are read in pieces.
const LITTLE: usize = 0;
const SEALINGS: [(Sealing, usize); 2] = [(Sealing::Cells, 10), (Sealing::Pointers, 8)];

fn held(cell: usize) -> usize {
    (PAGE / 16 - 1) * cell
}

fn contents(count: usize) -> Vec<u8> {
    (0..count).map(|place| (place * 7 % 251) as u8 + 1).collect()
}

fn is_tampered(error: &Error) -> bool {
    matches!(error.cause(), Cause::Tampered { .. })
}

/// A container of three pages and a tail, committed.
struct Victim {
    bench: Bench,
    id: ContainerId,
    bytes: Vec<u8>,
    /// Its first page on the medium.
    first: u64,
}

fn append(writer: &mut Writer, sealing: Sealing, bytes: &[u8]) -> ContainerId {
    writer.begin().unwrap();
    let group = writer.create_group().unwrap();
    let id = writer.create_container_sealed(group, sealing).unwrap();
    writer.append(id, bytes).unwrap();
    writer.commit().unwrap();
    id
}

impl Victim {
    fn new(sealing: Sealing, cell: usize) -> Victim {
        let mut bench = Bench::file(64, 8);
        let bytes = contents(3 * held(cell) + 17);
        let mut writer = bench.create();
        let before = bench.device.image();
        let id = append(&mut writer, sealing, &bytes);
        let after = bench.device.image();
        // The frame lies in an extent of the spine, before those of the group.
        let is_new = |page: &u64| after.holds(*page) && !before.holds(*page);
        let first = (0..64 * 8).rev().find(is_new).unwrap() - 2;
        writer.close().unwrap();
        Victim { bench, id, bytes, first }
    }

    fn snapshot(&self, cache: usize) -> Snapshot {
        let (device, vault) = (self.bench.device.clone(), self.bench.vault.clone());
        Recovered::recover(Arc::new(device), vault, self.bench.layout(), cache).unwrap().snapshot()
    }

    /// Reads; never anything else than what was written.
    fn reads(&self, view: &dyn View, from: usize, count: usize) -> Result<(), Error> {
        let mut read = vec![0; count];
        view.read(self.id, from as u64, &mut read)?;
        assert!(read == self.bytes[from..from + count], "a wrong answer");
        Ok(())
    }

    fn refuses(&self, view: &dyn View, from: usize, count: usize) {
        let answer = self.reads(view, from, count);
        assert!(matches!(answer.as_ref().map_err(Error::cause), Err(Cause::Tampered { .. })), "{answer:?}");
    }

    fn page(&self, number: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        self.bench.device.read(PageNumber(self.first + number), 0, &mut page).unwrap();
        page
    }

    fn put(&self, number: u64, page: &[u8]) {
        self.bench.device.clone().program(PageNumber(self.first + number), page).unwrap();
    }
}

#[test]
fn a_piece_costs_the_cells_that_hold_it() {
    for (sealing, cell) in SEALINGS {
        let victim = Victim::new(sealing, cell);
        let view = victim.snapshot(LITTLE);
        for (from, count) in [(0, 1), (3, 25), (held(cell) - 4, 8), (held(cell), 60), (3 * held(cell) - 1, 18)] {
            let before = victim.bench.device.meters();
            victim.reads(&view, from, count).unwrap();
            let spent = victim.bench.device.meters().since(&before);
            let within = count.min(3 * held(cell) - from);
            let cells = (from + within).div_ceil(cell) - from / cell;
            assert_eq!(spent.read_bytes, 16 * cells as u64, "{count} bytes from {from}");
        }
        // All of a page is read as a whole.
        let before = victim.bench.device.meters();
        victim.reads(&view, 0, held(cell)).unwrap();
        assert_eq!(victim.bench.device.meters().since(&before).read_bytes, PAGE as u64);
    }
}

#[test]
fn where_pages_have_room_they_are_opened_once() {
    for (sealing, cell) in SEALINGS {
        let victim = Victim::new(sealing, cell);
        let view = victim.snapshot(CACHE);
        victim.reads(&view, 3, 25).unwrap();
        let before = victim.bench.device.meters();
        (0..held(cell) - 40).step_by(7).for_each(|from| victim.reads(&view, from, 40).unwrap());
        assert_eq!(victim.bench.device.meters().since(&before).reads, 0);
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_without_effect() {
    for (sealing, cell) in SEALINGS {
        let victim = Victim::new(sealing, cell);
        let sealed = victim.page(1);
        for bit in (0..PAGE * 8).step_by(3) {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            victim.put(1, &changed);
            let view = victim.snapshot(LITTLE);
            let slot = bit / 8 / 16;
            let start = held(cell) + slot * cell;
            if slot < PAGE / 16 - 1 {
                // Its neighbours are what they were, until somebody reads it.
                let neighbour = if slot == 0 { start + cell } else { start - cell };
                victim.reads(&view, neighbour, cell).unwrap();
                victim.refuses(&view, start + 1, 2);
            }
            victim.refuses(&victim.snapshot(LITTLE), held(cell), held(cell));
            victim.refuses(&victim.snapshot(CACHE), held(cell), 2);
            victim.refuses(&victim.snapshot(LITTLE), 0, victim.bytes.len());
            victim.reads(&view, 0, held(cell)).unwrap();
            let damaged = victim.snapshot(LITTLE).verify_pages(&mut |_, _| {});
            assert!(matches!(damaged.as_slice(), [(id, error)] if *id == victim.id && is_tampered(error)));
        }
    }
}

#[test]
fn nobody_has_a_second_guess() {
    let (sealing, cell) = SEALINGS[0];
    let victim = Victim::new(sealing, cell);
    let (mut first, mut second) = (victim.page(0), victim.page(1));
    // A guess at a cell of the first page. In the second the MAC is wrong, and all cells are right.
    first[0] ^= 1;
    second[PAGE - 1] ^= 1;
    victim.put(0, &first);
    victim.put(1, &second);
    let view = victim.snapshot(LITTLE);
    victim.reads(&view, held(cell) + 5, 20).unwrap();
    victim.refuses(&view, 0, 5);
    // From here on only pages are believed whose MAC holds; what is whole is still there.
    victim.refuses(&view, held(cell) + 5, 20);
    victim.refuses(&view.clone(), 40, 5);
    victim.reads(&view, 2 * held(cell) + 5, 20).unwrap();
    victim.reads(&view, 3 * held(cell), 17).unwrap();
    // Until the volume is opened again.
    victim.reads(&victim.snapshot(LITTLE), held(cell) + 5, 20).unwrap();
}

#[test]
fn cells_and_pages_open_in_their_place_alone() {
    for (sealing, cell) in SEALINGS {
        let mut victim = Victim::new(sealing, cell);
        let pages = [victim.page(0), victim.page(1), victim.page(2)];
        let refused = |victim: &Victim, what: &str| {
            for (cache, count) in [(LITTLE, cell), (LITTLE, held(cell)), (CACHE, cell)] {
                let answer = victim.reads(&victim.snapshot(cache), 0, count);
                assert!(
                    matches!(answer.as_ref().map_err(Error::cause), Err(Cause::Tampered { .. })),
                    "{what}, {count} bytes: {answer:?}"
                );
            }
        };
        let mut slots = pages[0].clone();
        slots.copy_within(16..32, 0);
        victim.put(0, &slots);
        refused(&victim, "a cell of the next slot");
        let mut cells = pages[0].clone();
        cells[..16].copy_from_slice(&pages[1][..16]);
        victim.put(0, &cells);
        refused(&victim, "a cell of the next page");
        victim.put(0, &pages[1]);
        refused(&victim, "the next page");
        victim.put(0, &[0; PAGE]);
        refused(&victim, "a page that was never written");
        let torn = [&pages[0][..8], &[0; PAGE - 8]].concat();
        victim.put(0, &torn);
        refused(&victim, "a torn page");
        victim.put(0, &pages[0]);
        // Another container of another group, and the same of another opening.
        let mut writer = victim.bench.open().unwrap();
        let (before, bytes) = (victim.bench.device.image(), victim.bytes.clone());
        append(&mut writer, sealing, &bytes);
        let after = victim.bench.device.image();
        let is_new = |page: &u64| after.holds(*page) && !before.holds(*page);
        let other = (0..64 * 8).rev().find(is_new).unwrap() - 2;
        writer.close().unwrap();
        let stranger = after.page(other).to_vec();
        victim.put(0, &stranger);
        refused(&victim, "a page of another container and opening");
        let mut cells = pages[0].clone();
        cells[..16].copy_from_slice(&stranger[..16]);
        victim.put(0, &cells);
        refused(&victim, "a cell of another container and opening");
        victim.put(0, &pages[0]);
        victim.reads(&victim.snapshot(LITTLE), 0, victim.bytes.len()).unwrap();
    }
}

#[test]
fn a_container_stays_what_it_was_made() {
    for (sealing, cell) in SEALINGS {
        let mut victim = Victim::new(sealing, cell);
        for _ in 0..2 {
            let mut writer = victim.bench.open().unwrap();
            let told = writer.report().containers.into_iter().find(|told| told.id == victim.id).unwrap();
            assert_eq!((told.sealing, told.pages), (sealing, (victim.bytes.len() / held(cell)) as u64));
            writer.begin().unwrap();
            let more = contents(held(cell) + 3);
            assert_eq!(writer.append(victim.id, &more).unwrap(), victim.bytes.len() as u64);
            victim.bytes.extend_from_slice(&more);
            writer.commit().unwrap();
            victim.reads(&victim.snapshot(LITTLE), 0, victim.bytes.len()).unwrap();
            writer.close().unwrap();
        }
        // Also where it is sealed anew.
        let mut anew = Bench::file(64, 8);
        let mut writer = anew.create();
        assert!(writer.fill_from(&victim.snapshot(LITTLE), &mut |_, _| true).unwrap());
        let told = writer.report().containers.into_iter().find(|told| told.id == victim.id).unwrap();
        assert_eq!((told.sealing, told.bytes), (sealing, victim.bytes.len() as u64));
        victim.reads(&writer, 3, victim.bytes.len() - 3).unwrap();
    }
}

#[test]
fn pieces_come_as_they_were_written_and_those_of_a_page_cost_one_read() {
    for (sealing, cell) in [SEALINGS[0], SEALINGS[1], (Sealing::Sectors, 16), (Sealing::Whole, 16)] {
        let victim = Victim::new(sealing, cell);
        let held = if cell == 16 { PAGE - 16 } else { held(cell) };
        let view = victim.snapshot(LITTLE);
        // Beside each other, in one cell, over a border of pages, into the tail and in no order.
        let places =
            [(3, 5), (8, 2), (9, 30), (100, 1), (held - 4, 9), (2 * held - 1, 2), (3 * held - 6, 12), (40, 25)];
        let mut at = 0;
        let pieces = places.map(|(offset, bytes)| {
            at += bytes;
            Piece { offset: offset as u64, bytes, at: at - bytes }
        });
        let mut read = vec![0; at];
        view.read_pieces(victim.id, &pieces, &mut read).unwrap();
        let expected: Vec<u8> =
            places.iter().flat_map(|(offset, bytes)| victim.bytes[*offset..offset + bytes].to_vec()).collect();
        assert!(read == expected, "{sealing:?}");
        let before = victim.bench.device.meters();
        view.read_pieces(victim.id, &pieces[..4], &mut read).unwrap();
        let spent = victim.bench.device.meters().since(&before);
        assert!(spent.reads == 1 || cell == 16, "{sealing:?}: {} reads", spent.reads);
        let outside = Piece { offset: 3, bytes: 5, at: at - 4 };
        assert!(matches!(
            view.read_pieces(victim.id, &[outside], &mut read).as_ref().map_err(Error::cause),
            Err(Cause::Misuse(_))
        ));
        let behind = Piece { offset: victim.bytes.len() as u64 - 1, bytes: 2, at: 0 };
        assert!(view.read_pieces(victim.id, &[behind], &mut read).is_err());
    }
}

#[test]
fn pieces_of_a_forged_page_are_refused_and_end_the_guessing() {
    for (sealing, cell) in SEALINGS {
        let victim = Victim::new(sealing, cell);
        let mut page = victim.page(0);
        page[5 * 16] ^= 1;
        victim.put(0, &page);
        let view = victim.snapshot(LITTLE);
        let pieces = [0, 5 * cell, 9 * cell].map(|offset| Piece { offset: offset as u64, bytes: 3, at: offset });
        let read = |pieces: &[Piece]| view.read_pieces(victim.id, pieces, &mut vec![0; PAGE]);
        read(&[pieces[0], pieces[2]]).unwrap();
        assert!(matches!(read(&pieces).as_ref().map_err(Error::cause), Err(Cause::Tampered { .. })));
        assert!(
            matches!(read(&pieces[..1]).as_ref().map_err(Error::cause), Err(Cause::Tampered { .. })),
            "only as a whole from now on"
        );
    }
}

#[test]
fn every_flipped_bit_of_a_sector_is_an_error() {
    let victim = Victim::new(Sealing::Sectors, 16);
    let whole = victim.page(1);
    for bit in (0..PAGE * 8).step_by(5) {
        let mut page = whole.clone();
        page[bit / 8] ^= 1 << (bit % 8);
        victim.put(1, &page);
        let view = victim.snapshot(LITTLE);
        victim.refuses(&view, SECTOR_PAYLOAD_BYTES + 3, 1);
        victim.refuses(&view, 0, 3 * SECTOR_PAYLOAD_BYTES);
        assert_eq!(view.verify_pages(&mut |_, _| ()).len(), 1, "bit {bit}");
        victim.reads(&view, 0, SECTOR_PAYLOAD_BYTES).unwrap();
    }
    victim.put(1, &victim.page(2));
    victim.refuses(&victim.snapshot(CACHE), SECTOR_PAYLOAD_BYTES, 1);
}

#[test]
fn a_piece_costs_the_sectors_that_hold_it() {
    let mut large = Bench::new(Part::file(2048, 4, 128), 8);
    let mut writer = large.create();
    let bytes = contents(3 * 4 * SECTOR_PAYLOAD_BYTES + 100);
    let id = append(&mut writer, Sealing::Sectors, &bytes);
    writer.close().unwrap();
    let (device, vault) = (large.device.clone(), large.vault.clone());
    let view = Recovered::recover(Arc::new(device), vault, large.layout(), LITTLE).unwrap().snapshot();
    for (from, count, sectors) in
        [(0, 1, 1), (496, 496, 1), (495, 2, 2), (1984, 8, 1), (4 * 496 - 3, 9, 2), (5952, 100, 0)]
    {
        let before = large.device.meters();
        let mut read = vec![0; count];
        view.read(id, from as u64, &mut read).unwrap();
        assert!(read == bytes[from..from + count]);
        assert_eq!(large.device.meters().since(&before).read_bytes, 512 * sectors, "{count} bytes from {from}");
    }
    let mut all = vec![0; bytes.len()];
    view.read(id, 0, &mut all).unwrap();
    assert!(all == bytes && view.verify_pages(&mut |_, _| ()).is_empty());
    // Two sectors of a page change places.
    let mut page = vec![0; 2048];
    let is_it = |number: &u64| {
        large.device.read(PageNumber(*number), 0, &mut page).is_ok() && {
            let moved = [&page[512..1024], &page[..512], &page[1024..]].concat();
            large.device.clone().program(PageNumber(*number), &moved).unwrap();
            let found = view.verify_pages(&mut |_, _| ());
            large.device.clone().program(PageNumber(*number), &page).unwrap();
            !found.is_empty()
        }
    };
    assert_eq!((0..large.device.part().geometry.page_count()).filter(is_it).count(), 3);
}
