//! Nameless pools: single histories, each of which shows one thing.

mod bench;

use bench::Bench;
use counterfoil_flash_sim::Part;
use counterfoil_log::{Error, NamelessPage, PoolId, PoolOptions, View, Writer};
use counterfoil_vault::witness;

fn payload(number: u64) -> Vec<u8> {
    let mut bytes = vec![number as u8; 496];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn read(view: &dyn View, pool: PoolId, page: NamelessPage) -> Result<u64, Error> {
    let mut bytes = [0; 496];
    view.read_nameless(pool, page, &mut bytes)?;
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes[..], payload(number));
    Ok(number)
}

fn pool(writer: &mut Writer) -> PoolId {
    writer.begin().unwrap();
    let pool = writer.create_pool(PoolOptions::default()).unwrap();
    writer.commit().unwrap();
    pool
}

/// Writes pages of these numbers in a commit of their own.
fn write(writer: &mut Writer, pool: PoolId, numbers: impl Iterator<Item = u64>) -> Vec<NamelessPage> {
    writer.begin().unwrap();
    let pages = numbers.map(|number| writer.write_nameless(pool, &payload(number)).unwrap()).collect();
    writer.commit().unwrap();
    writer.check();
    pages
}

fn free(writer: &mut Writer, pool: PoolId, pages: &[NamelessPage]) {
    writer.begin().unwrap();
    pages.iter().for_each(|page| writer.free_nameless(pool, *page).unwrap());
    writer.commit().unwrap();
    writer.check();
}

fn is_stale(view: &dyn View, pool: PoolId, page: NamelessPage) -> bool {
    matches!(read(view, pool, page), Err(Error::Tampered { .. }))
}

fn benches() -> [Bench; 2] {
    [Bench::file(200, 8), Bench::new(Part::nand(512, 4, 400), 8)]
}

#[test]
fn pages_are_there_again_after_every_way_of_opening() {
    for mut bench in benches() {
        let mut writer = bench.create();
        let pool = pool(&mut writer);
        let mut pages = Vec::new();
        for round in 0..6u64 {
            pages.extend(write(&mut writer, pool, (0..30).map(|number| round * 100 + number)));
            free(&mut writer, pool, &pages.drain(..10).collect::<Vec<_>>());
            let numbers: Vec<u64> = pages.iter().map(|page| read(&writer, pool, *page).unwrap()).collect();
            match round % 3 {
                0 => writer.close().unwrap(),
                1 => writer.checkpoint().unwrap(),
                _ => {}
            }
            drop(writer);
            let snapshot = bench.judged().unwrap();
            writer = bench.open().unwrap();
            writer.check();
            for (page, number) in pages.iter().zip(&numbers) {
                assert_eq!(read(&snapshot, pool, *page), Ok(*number));
                assert_eq!(read(&writer, pool, *page), Ok(*number));
            }
            assert_eq!(snapshot.pools(), [(pool, pages.len() as u64)]);
        }
        assert_eq!(witness::duplicates(), []);
    }
}
