//! Images that are not what they should be.

use counterfoil_record::alone::Superblock;
use counterfoil_vault::{Plain, Suite, Vault};

use super::chip::{NAND, SHAPE};
use super::{Chip, Stage, with_image};

/// The bytes at which superblocks begin.
fn superblocks(image: &[u8]) -> Vec<usize> {
    (0..image.len()).step_by(256).filter(|at| Superblock::decode(&image[*at..]).is_some()).collect()
}

#[test]
fn a_store_is_found_wherever_it_lies_in_a_dump() {
    let (stage, chip) = with_image();
    let image = chip.dump();
    for (before, after) in [(0, 0), (256, 0), (0, 100), (4096 + 256, 777), (1 << 20, 1 << 20), ((1 << 20) - 256, 3)] {
        stage.write("img", [vec![0xA5; before], image.clone(), vec![0x5A; after]].concat());
        assert_eq!(stage.good(&["kv", "img", "get", "song/a"]), "seven plays", "{before} {after}");
        assert!(stage.good(&["inspect", "img"]).contains(&format!("from byte {before} on")));
    }
    stage.good(&["counter", "adopt", "img", "--yes"]);
    stage.write("value", "x");
    stage.good(&["kv", "img", "put", "song/a", "value"]);
    let written = stage.read("img");
    assert!(written[..(1 << 20) - 256].iter().all(|byte| *byte == 0xA5) && written.ends_with(&[0x5A; 3]));
    assert_eq!(stage.good(&["kv", "img", "get", "song/a"]), "x");
}

#[test]
fn the_wrong_key_and_a_passphrase_are_told_apart() {
    let (stage, _) = with_image();
    stage.write("other", [9; 32]);
    stage.refused(&["kv", "img", "list", "--key-file", "other"], 1, &["the key opens none", "(img)"]);
    stage.write("p", "a passphrase");
    let mut command = stage.command(&["kv", "img", "list", "--passphrase-file", "p"]);
    let ended = crate::main::stage::ended(command.env_remove("COUNTERFOIL_KEY_FILE").output().expect("runs"));
    assert_eq!(ended.code, 1);
    ended.says(&["no passphrase", "--key-file"]);
    let mut command = stage.command(&["kv", "img", "list"]);
    let ended = crate::main::stage::ended(command.env_remove("COUNTERFOIL_KEY_FILE").output().expect("runs"));
    assert_eq!(ended.code, 1);
    ended.says(&["no key was given"]);
}

#[test]
fn an_image_that_is_not_whole_is_told() {
    let (stage, chip) = with_image();
    let image = chip.dump();
    for rest in [&image[..image.len() - 1], &image[..image.len() - 512], &image[..image.len() / 2], &image[..4096]] {
        stage.write("img", rest);
        for words in [&["kv", "img", "list"][..], &["verify", "img"], &["inspect", "img"], &["counter", "show", "img"]]
        {
            stage.refused(words, 3, &["not whole", "(img)"]);
        }
    }
    // Nothing is left that says what it is.
    for rest in [&image[2 * 16 * 512..], &image[256..], &[]] {
        stage.write("img", rest);
        stage.refused(&["kv", "img", "list"], 1, &["not a Counterfoil database"]);
    }
}

#[test]
fn one_good_superblock_is_enough() {
    let mut chip = Chip::new(NAND, SHAPE, Suite::AsconAead128);
    let filled = chip.make::<u16, _>(|store| {
        (0..2000u32).try_for_each(|turn| {
            let id = counterfoil_record::RecordId(100 + turn * 37 % 900);
            store.commit(&[(id, Some(b"twenty-four bytes, as is"))]).map(drop)
        })
    });
    filled.expect("filled");
    let (stage, image) = (Stage::new(), chip.dump());
    let copies = superblocks(&image);
    assert_eq!(copies.len(), 3);
    let mut damaged = image.clone();
    for (number, at) in copies.iter().enumerate() {
        assert!(number == 0 || stage.run(&["verify", "img"]).out.contains("of 3 superblocks"));
        damaged[at + 200] ^= 1;
        stage.write("img", &damaged);
        if number < 2 {
            let listed = stage.run(&["kv", "img", "list"]);
            assert_eq!((listed.code, listed.out.lines().count()), (0, 900), "{}", listed.err);
            assert!(listed.err.contains(&format!("{} of 3 superblocks are not good", number + 1)), "{}", listed.err);
        }
    }
    stage.refused(&["kv", "img", "list"], 1, &["the key opens none of the 3 superblocks"]);
}

/// Whatever is changed on a page that the newest commit needs, nothing wrong is shown.
#[test]
fn a_changed_page_is_noticed() {
    let (stage, chip) = with_image();
    let image = chip.dump();
    let (mut refused, mut older) = (0, 0);
    for page in (0..256).filter(|page| image[page * 512..][..512].iter().any(|byte| *byte != 0xFF)) {
        let mut changed = image.clone();
        changed[page * 512 + 300] ^= 1;
        stage.write("img", &changed);
        let ended = stage.run(&["verify", "img"]);
        match ended.code {
            0 => older += u32::from(!ended.out.starts_with("4 records")),
            // The only superblock that this young image has.
            1 => ended.says(&["the key opens none"]),
            3 => refused += 1,
            other => panic!("{other}: {}", ended.err),
        }
    }
    // Without its counter an image may be an older one, which the changed page made of it.
    assert!(refused >= 1 && older >= 1, "{refused} {older}");
    stage.write("img", &image);
    stage.good(&["counter", "adopt", "img", "--yes"]);
    for page in (0..256).filter(|page| image[page * 512..][..512].iter().any(|byte| *byte != 0xFF)) {
        let mut changed = image.clone();
        changed[page * 512 + 300] ^= 1;
        stage.write("img", &changed);
        let ended = stage.run(&["verify", "img"]);
        assert!(ended.code == 3 || ended.code == 1 || ended.out.starts_with("4 records"), "{page}: {}", ended.out);
    }
}

/// A superblock as its writer would have sealed it, in the first page of a file of this length.
fn forged(vault: &Vault, bytes: u32, fields: &[(usize, u32)]) -> Vec<u8> {
    let mut clear = [0; Superblock::BYTES];
    clear[..8].copy_from_slice(b"foilchip");
    clear[8..10].copy_from_slice(&1u16.to_le_bytes());
    clear[10] = vault.suite().number();
    for (at, value) in [(11, 4 | 17 << 24), (12, 512), (16, 16), (20, 4), (24, 4), (28, 0)].iter().chain(fields) {
        let width = if *at == 16 {
            2
        } else if *at == 11 || *at == 18 {
            1
        } else {
            4
        };
        clear[*at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
    clear[32..64].copy_from_slice(&vault.id().0);
    let page_bytes = u32::from_le_bytes([clear[12], clear[13], clear[14], clear[15]]).clamp(256, 65536) as usize;
    let mut image = vec![0xFF; page_bytes.max(bytes as usize)];
    let (head, sealed) = image[..page_bytes].split_at_mut(clear.len());
    head.copy_from_slice(&clear);
    sealed.fill(0);
    sealed[..clear.len()].copy_from_slice(&clear);
    vault.seal_opening(0, 0, 0, Plain::new(sealed));
    image
}

/// Whoever has the key and means harm ends in an error too, at once, and in little memory.
#[test]
fn hostile_superblocks_end_in_an_error() {
    let stage = Stage::new();
    let vault = Chip::new(NAND, SHAPE, Suite::AsconAead128).vault;
    let (page, block, entries, blocks, index, names) = (12, 16, 18, 20, 24, 28);
    let most = u32::MAX;
    for fields in [
        &[][..],
        &[(blocks, most), (index, most)],
        &[(blocks, 1 << 31), (index, 1 << 31), (names, most)],
        &[(blocks, most), (index, 1)],
        &[(page, 65536), (block, 65535), (blocks, 1 << 20), (index, 1 << 20)],
        &[(page, 65536), (block, 1024), (blocks, 4), (index, 4), (names, most)],
        &[(page, 256), (block, 2), (blocks, 1 << 20), (index, 1 << 20)],
        &[(page, 1 << 31)],
        &[(page, 0)],
        &[(block, 0)],
        &[(blocks, 0), (index, 0)],
        &[(entries, 0)],
        &[(entries, 255)],
        &[(11, 6), (names, most)],
    ] {
        stage.write("img", forged(&vault, 1 << 20, fields));
        ends_at_once(&stage, &format!("{fields:?}"));
    }
    // One that is possible in every respect, with nothing behind it.
    for flags in [4, 6] {
        let superblock = forged(&vault, 32 * 8192, &[(11, flags), (blocks, 32), (index, 20), (names, most)]);
        stage.write("img", [vec![0; 12 * 8192], superblock].concat());
        ends_at_once(&stage, "possible");
    }
}

fn ends_at_once(stage: &Stage, what: &str) {
    for words in ["kv img list", "verify img", "counter adopt img --yes"] {
        let limit = format!("ulimit -v 2000000; exec \"$0\" {words}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &limit, env!("CARGO_BIN_EXE_counterfoil")]).current_dir(stage.folder()).env_clear();
        shell.env("COUNTERFOIL_KEY_FILE", stage.path("k")).env("COUNTERFOIL_STATE_DIR", stage.path("state"));
        let ended = crate::main::stage::ended(shell.output().expect("runs"));
        assert!(matches!(ended.code, 1 | 3), "{what} {words}: {} {}", ended.code, ended.err);
        ended.says(&[]);
    }
}

/// More claims than anybody tries, and a good one behind the first of them.
#[test]
fn a_file_full_of_claims_takes_no_longer() {
    let (stage, chip) = with_image();
    let image = chip.dump();
    let claim = &image[superblocks(&image)[0]..][..256];
    let mut forged = claim.to_vec();
    forged[150] ^= 1;
    let few = [forged.repeat(1000), image.clone()].concat();
    stage.write("img", few);
    assert_eq!(stage.good(&["kv", "img", "get", "song/a"]), "seven plays");
    stage.write("img", [forged.repeat(100_000), image].concat());
    stage.refused(&["kv", "img", "get", "song/a"], 1, &["the key opens none"]);
}
