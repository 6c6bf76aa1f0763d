//! NOR flash: bits are cleared, and a block is set again.

use super::*;

fn nor(again: Again, scenario: &str) -> SimulatedDevice {
    let part = Part { programming: Programming::Clears(again), ..Part::nor(PAGE as u32, 4, 16) };
    SimulatedDevice::new(part, scenario.parse().expect("a scenario"))
}

#[test]
fn programming_clears_bits_and_pages_come_in_any_order() {
    let device = nor(Again::ClearingMore, "seed1");
    program(&device, 2, 0b1111_0000).expect("calm");
    program(&device, 0, 7).expect("in any order");
    program(&device, 2, 0b1010_0000).expect("only clears bits");
    assert_eq!(program(&device, 2, 0b1110_0000), Err(Error::NotErased { page: PageNumber(2) }));
    assert_eq!(page(&device, 2), [0b1010_0000; PAGE]);
    assert_eq!(*device.image().page(2), [0b1010_0000; PAGE], "flash needs no flush");
    erase(&device, 0).expect("calm");
    assert_eq!(page(&device, 2), [0xFF; PAGE]);
}

#[test]
fn manners_are_checked_or_not() {
    let strict = nor(Again::Never, "seed1");
    program(&strict, 0, 3).expect("calm");
    assert_eq!(program(&strict, 0, 1), Err(Error::NotErased { page: PageNumber(0) }));
    let lax = nor(Again::Anyhow, "seed1");
    program(&lax, 0, 0b0011).expect("calm");
    program(&lax, 0, 0b0110).expect("nobody checks");
    assert_eq!(page(&lax, 0), [0b0010; PAGE]);
}

#[test]
fn a_cut_leaves_any_subset_of_the_changed_bits() {
    let device = nor(Again::ClearingMore, "seed1+cut2-bits-all");
    program(&device, 0, 0b0111_1111).expect("calm");
    assert!(is_power_cut(program(&device, 0, 0b0011_0000)));
    device.power_on();
    let bytes = page(&device, 0);
    assert!(
        bytes.iter().all(|byte| byte & !0b0111_1111 == 0 && byte & 0b0011_0000 == 0b0011_0000),
        "only changed bits"
    );
    assert!(bytes.contains(&0b0111_1111) && bytes.contains(&0b0011_0000) && bytes.contains(&0b0011_0101));
    program(&device, 0, 0b0011_0000).expect("what a cut began is finished");
    assert_eq!(page(&device, 0), [0b0011_0000; PAGE]);
}

#[test]
fn an_erase_cut_short_leaves_bits_cleared_or_set() {
    let (mut cleared, mut set) = (0, 0);
    for seed in 0..20 {
        let device = nor(Again::Never, &format!("seed{seed}+cut2-bits-all"));
        program(&device, 1, 0b0000_1111).expect("calm");
        assert!(is_power_cut(erase(&device, 0)));
        device.power_on();
        let (written, blank) = (page(&device, 1), page(&device, 3));
        let is_clearing = blank != [0xFF; PAGE];
        assert!(written.iter().all(|byte| if is_clearing { byte & 0xF0 == 0 } else { byte & 0x0F == 0x0F }));
        (cleared, set) = (cleared + u64::from(is_clearing), set + u64::from(!is_clearing));
    }
    assert!(cleared > 4 && set > 4, "{cleared} were being cleared, {set} set");
}

#[test]
fn the_board_of_the_paper_has_a_price() -> Result<(), Error> {
    let mut board = SimulatedDevice::new(Part::gnatdb_nor_board(4), Scenario::calm(1));
    assert_eq!(board.geometry().block_pages * board.geometry().page_bytes, 16 << 10);
    board.program(PageNumber(0), &[0; 512])?;
    board.read(PageNumber(0), 5, &mut [0; 20])?;
    board.erase(BlockNumber(0))?;
    assert_eq!(board.nanoseconds(), (3670 + 33 + 339_306) * 1000);
    Ok(())
}
