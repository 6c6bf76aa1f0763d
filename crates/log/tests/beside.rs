//! A reader beside a writer: it sees each commit as soon as all of it is there, and asks at little cost where nobody writes.

mod bench;

use std::sync::Arc;

use bench::{Bench, CACHE, record};
use counterfoil_flash_sim::{Image, Part, Scenario, SimulatedDevice};
use counterfoil_log::{Recovered, Writer, record_space};

const EXTENTS: u64 = 64;

/// A commit whose frame has several pages.
fn put_long(writer: &mut Writer, number: u8) {
    writer.begin().unwrap();
    for part in 0..3 {
        writer.put_record(record_space::USER, &[b'r', part], &[number; 400]).unwrap();
    }
    writer.commit().unwrap();
}

/// The medium as a reader of another process finds it.
struct Reader {
    device: SimulatedDevice,
    image: Image,
    recovered: Option<Recovered>,
}

impl Reader {
    fn new(bench: &Bench) -> Reader {
        let device = SimulatedDevice::new(Part::file(512, 4, EXTENTS * 2), Scenario::calm(1));
        let image = bench.device.image();
        device.restore(image.clone());
        let shared = Arc::new(device.clone());
        let recovered = Some(Recovered::recover(shared, bench.vault.clone(), bench.layout(), CACHE).unwrap());
        Reader { device, image, recovered }
    }

    fn take(&mut self, page: u64, from: &Image) {
        self.image.take(page, from);
        self.device.restore(self.image.clone());
    }

    /// The number of the commit that is seen now.
    fn sees(&mut self) -> Option<u8> {
        let recovered = self.recovered.take().unwrap().catch_up().unwrap();
        let seen = record(&recovered.snapshot(), "r\u{0}").map(|value| value[0]);
        self.recovered = Some(recovered);
        seen
    }
}

#[test]
fn every_commit_is_seen_once_all_its_pages_are_there() {
    let mut bench = Bench::file(EXTENTS, 8);
    let mut writer = bench.create();
    put_long(&mut writer, 0);
    for number in 1..40 {
        let mut reader = Reader::new(&bench);
        assert_eq!(reader.sees(), Some(number - 1));
        put_long(&mut writer, number);
        let newest = bench.device.image();
        let mut pages = newest.differing(&reader.image);
        assert!(pages.len() > 1, "the frame has one page");
        if number % 2 == 0 {
            pages.reverse();
        }
        let mut seen = Some(number - 1);
        for page in pages {
            reader.take(page, &newest);
            let before = seen;
            // Twice, since what was seen the first time is remembered.
            seen = reader.sees();
            assert_eq!(reader.sees(), seen);
            // Behind the frame may come the pages of a checkpoint.
            assert!(seen == before || (before, seen) == (Some(number - 1), Some(number)), "{before:?}, then {seen:?}");
        }
        assert_eq!(seen, Some(number));
    }
}

#[test]
fn a_writer_that_opens_anew_is_seen() {
    let mut bench = Bench::file(EXTENTS, 8);
    let mut writer = bench.create();
    put_long(&mut writer, 1);
    let mut reader = Reader::new(&bench);
    assert_eq!(reader.sees(), Some(1));
    writer.close().unwrap();
    for number in 2..6 {
        let mut writer = bench.open().unwrap();
        put_long(&mut writer, number);
        drop(writer);
        reader.device.restore(bench.device.image());
        assert_eq!((reader.sees(), reader.sees()), (Some(number), Some(number)));
    }
}

#[test]
fn where_nobody_writes_two_pages_are_read() {
    let mut bench = Bench::file(EXTENTS, 8);
    let mut writer = bench.create();
    for number in 0..20 {
        put_long(&mut writer, number);
        let mut reader = Reader::new(&bench);
        assert_eq!(reader.sees(), Some(number));
        let before = reader.device.meters();
        assert_eq!(reader.sees(), Some(number));
        assert!(reader.device.meters().since(&before).reads <= 2);
    }
}
