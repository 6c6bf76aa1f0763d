//! The image of a device's flash: made by the store of the device itself and opened by the program, and back.

mod chip;
mod hostile;

use std::collections::BTreeMap;

use counterfoil_record::RecordId;
use counterfoil_vault::Suite;

use super::stage::{Ended, Stage};
use chip::{Chip, NAND, SHAPE};

/// A device with named and numbered records, and a stage with its image.
fn with_image() -> (Stage, Chip) {
    let mut chip = Chip::new(NAND, SHAPE, Suite::AsconAead128);
    fill::<u16>(&mut chip);
    let stage = Stage::new();
    stage.write("img", chip.dump());
    (stage, chip)
}

fn fill<W: counterfoil_record::alone::Word + 'static>(chip: &mut Chip) {
    let mut buffer = [0; 512];
    let filled = chip.make::<W, _>(|store| {
        store.put_named(b"song/b", b"nine plays", &mut buffer)?;
        store.put_named(b"song/a", b"seven plays", &mut buffer)?;
        store.put_named(b"gone", b"nothing", &mut buffer)?;
        store.delete_named(b"gone", &mut buffer)?;
        store.commit(&[(RecordId(300), Some(b"\0raw")), (RecordId(100), Some(b""))])
    });
    filled.expect("filled");
}

/// The number that a note says the device's counter has to stand at.
fn needed(ended: &Ended) -> u64 {
    assert_eq!(ended.code, 0, "{}", ended.err);
    let words = ended.err.split_once("needs its counter at ").expect("told").1;
    words.lines().next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_host_reads_what_a_device_wrote_and_leaves_no_trace() {
    let (stage, chip) = with_image();
    let listed = stage.run(&["kv", "img", "list"]);
    assert_eq!((listed.code, listed.out.as_str()), (0, "song/a\nsong/b\n#100\n#300\n"), "{}", listed.err);
    assert_eq!(listed.err, "note: freshness not checked\n");
    assert_eq!(stage.good(&["kv", "img", "list", "song/"]), "song/a\nsong/b\n");
    assert_eq!(stage.good(&["kv", "img", "list", "#3"]), "#300\n");
    assert_eq!(stage.good(&["kv", "img", "get", "song/a"]), "seven plays");
    assert_eq!(stage.run(&["kv", "img", "get", "#300"]).bytes, b"\0raw");
    assert_eq!(stage.good(&["kv", "img", "get", "#100"]), "");
    for absent in ["song/c", "gone", "#3", "#301", "#99999999", "#99999999999999"] {
        stage.refused(&["kv", "img", "get", absent], 1, &["no record", absent]);
    }
    stage.refused(&["kv", "img", "get", &"n".repeat(256)], 1, &["1 to 255 bytes"]);
    assert!(stage.good(&["verify", "img"]).ends_with("freshness: not checked; all good\n"));
    let inspected = stage.good(&["inspect", "img"]);
    for part in ["16 blocks of 16 pages of 512 bytes, 3 of them for the index", "ascon-aead128", "2 named, 2 numbered"]
    {
        assert!(inspected.contains(part), "{part} is not in {inspected}");
    }
    assert!(inspected.contains(&format!("version {}\n", chip.counted())), "{inspected}");
    assert!(chip.dump() == stage.read("img") && !stage.path("state").exists());
}

#[test]
fn every_cipher_and_width_opens() {
    for suite in Suite::ALL {
        for (is_salted, is_wide) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut chip = Chip::new(NAND, counterfoil_record::alone::Shape { is_salted, ..SHAPE }, suite);
            if is_wide {
                fill::<u32>(&mut chip)
            } else {
                fill::<u16>(&mut chip)
            }
            let stage = Stage::new();
            stage.write("img", chip.dump());
            assert_eq!(stage.good(&["kv", "img", "get", "song/b"]), "nine plays", "{suite} {is_salted} {is_wide}");
            let width = if is_wide { "words of 4 bytes" } else { "words of 2 bytes" };
            assert!(stage.good(&["inspect", "img"]).contains(width));
            stage.good(&["counter", "adopt", "img", "--yes"]);
            stage.write("value", "eight plays");
            stage.good(&["kv", "img", "put", "song/b", "value"]);
            assert_eq!(stage.good(&["kv", "img", "get", "song/b"]), "eight plays");
        }
    }
}

#[test]
fn without_its_counter_an_image_is_only_read() {
    let (stage, chip) = with_image();
    for words in
        [&["kv", "img", "put", "x", "k"][..], &["kv", "img", "put", "#30", "k"], &["kv", "img", "delete", "song/a"]]
    {
        stage.refused(words, 3, &["the counter of this device is not here", "(img)", "counter adopt"]);
    }
    stage.refused(&["kv", "img", "list", "--require-counter"], 3, &["no counter"]);
    stage.refused(&["verify", "img", "--require-counter"], 3, &["no counter"]);
    stage.refused(&["counter", "forget", "img", "--yes"], 1, &["no counter"]);
    stage.refused(&["counter", "show", "img"], 3, &["is not here"]);
    assert!(chip.dump() == stage.read("img"));
}

/// To the host and back, as often as one likes; whoever puts back what was before is noticed on either side.
#[test]
fn an_image_goes_to_the_host_and_back() {
    let (stage, mut chip) = with_image();
    let first = chip.dump();
    let adopted = needed(&stage.run(&["counter", "adopt", "img", "--yes"]));
    assert_eq!(adopted, chip.counted(), "nothing was written yet");
    stage.write("value", "six plays");
    let put = needed(&stage.run(&["kv", "img", "put", "song/a", "value"]));
    assert_eq!(put, adopted + 3, "an opening and a commit");
    stage.good(&["kv", "img", "put", "#200", "value"]);
    let deleted = needed(&stage.run(&["kv", "img", "delete", "song/b", "#300"]));
    assert_eq!(stage.good(&["kv", "img", "list", "--require-counter"]), "song/a\n#100\n#200\n");
    assert!(
        stage.good(&["verify", "img"]).contains("3 records") && stage.good(&["verify", "img"]).contains("compared")
    );

    // Back on the device, which refuses what it had before.
    let newest = stage.read("img");
    chip.load(&newest, deleted);
    let mut buffer = [0; 512];
    let plays = chip.open::<u16, _>(|store| {
        store.put_named(b"song/c", b"from the device", &mut buffer)?;
        let bytes = store.read_named(b"song/a", &mut buffer)?;
        Ok(buffer[..bytes].to_vec())
    });
    assert_eq!(plays.expect("opens"), b"six plays");
    let counted = chip.counted();
    let went_on = chip.dump();
    chip.load(&first, counted);
    assert_eq!(chip.open::<u16, _>(|_| Ok(())), Err(counterfoil_record::alone::Error::RolledBack));

    // And on the host: what was before is refused, what the device made of it is the owner's to accept.
    stage.write("img", &first);
    let told = stage.refused(&["kv", "img", "list"], 3, &["not the newest image", "(img)", "counter adopt"]);
    assert!(told.contains(&format!("it is at {adopted}, and the counter stands at {deleted}")), "{told}");
    stage.refused(&["kv", "img", "put", "x", "value"], 3, &["not the newest image"]);
    stage.refused(&["verify", "img"], 3, &["not the newest image"]);
    stage.write("img", &went_on);
    stage.refused(&["kv", "img", "list"], 3, &["went on elsewhere", &counted.to_string()]);
    stage.refused(&["counter", "show", "img"], 3, &["went on elsewhere"]);
    assert_eq!(needed(&stage.run(&["counter", "adopt", "img", "--yes"])), counted);
    assert_eq!(stage.good(&["kv", "img", "get", "song/c", "--require-counter"]), "from the device");
    assert!(stage.good(&["counter", "show", "img"]).contains("newest"));
}

/// An older image that its owner takes for the newest goes on above its counter, and says so for ever.
#[test]
fn an_older_image_is_adopted_with_a_mark() {
    let (stage, _) = with_image();
    stage.good(&["counter", "adopt", "img", "--yes"]);
    let older = stage.read("img");
    stage.write("value", "x");
    let newer = needed(&stage.run(&["kv", "img", "put", "song/a", "value"]));
    let put_back = stage.read("img");
    stage.write("img", &older);
    let adopted = needed(&stage.run(&["counter", "adopt", "img", "--yes"]));
    assert_eq!(adopted, newer + 2);
    assert_eq!(stage.good(&["kv", "img", "get", "song/a", "--require-counter"]), "seven plays");
    assert!(stage.good(&["inspect", "img"]).contains("rollbacks      1\n"));
    stage.write("img", &put_back);
    stage.refused(&["kv", "img", "list"], 3, &["not the newest image"]);
}

#[test]
fn a_host_makes_an_image_that_a_device_opens() {
    let stage = Stage::new();
    let made = stage.run(&["init", "img", "--device", "512,16,16,3,100", "--cipher", "ascon-aead128"]);
    assert_eq!(needed(&made), 3);
    stage.refused(&["init", "img", "--device", "512,16,16"], 1, &["already"]);
    assert_eq!(stage.read("img").len(), 512 * 16 * 16);
    let mut counted = 0;
    let mut expected = BTreeMap::new();
    for play in 0..12 {
        let (name, value) = (format!("song/{play}"), format!("{play} plays"));
        stage.write("value", &value);
        counted = needed(&stage.run(&["kv", "img", "put", &name, "value"]));
        expected.insert(name, value);
    }
    assert_eq!(stage.good(&["kv", "img", "list"]).lines().count(), 12);
    assert!(stage.good(&["verify", "img"]).contains("12 records"));
    let identity = stage.good(&["inspect", "img"]);
    let identity = identity.lines().find_map(|line| line.strip_prefix("identity")).expect("told").trim();
    assert!(made.err.contains(identity), "{}", made.err);

    let mut chip = Chip::new(NAND, SHAPE, Suite::AsconAead128).named(identity);
    chip.load(&stage.read("img"), counted);
    let mut buffer = [0; 512];
    let found = chip.open::<u16, _>(|store| {
        let mut found = BTreeMap::new();
        for id in 0..store.names() {
            if let Some((name, value)) = store.named_at(id, &mut buffer)? {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                found.insert(text(name), text(value));
            }
        }
        store.put_named(b"back", b"again", &mut buffer)?;
        Ok(found)
    });
    assert_eq!(found.expect("opens"), expected);
    chip.load(&stage.read("img"), counted - 1);
    assert!(chip.open::<u16, _>(|_| Ok(())).is_ok(), "a cut came between the commit and its step");
    chip.load(&stage.read("img"), counted + 1);
    assert!(chip.open::<u16, _>(|_| Ok(())).is_err());
}

/// The more leaves, the more changes of the index must be able to wait where a store is made.
#[test]
fn a_host_makes_images_of_every_size() {
    for (shape, bytes) in [("512,16,128,25,99", 1 << 20), ("2048,64,64,12,99", 8 << 20), ("256,8,16,3,20", 32 << 10)] {
        let stage = Stage::new();
        let made = stage.run(&["init", "img", "--device", shape, "--cipher", "ascon-aead128"]);
        assert!(made.err.contains("identity"), "{shape}: {}", made.err);
        stage.write("value", "of a name");
        stage.run(&["kv", "img", "put", "name", "value"]);
        assert!(stage.good(&["kv", "img", "list"]).contains("name"), "{shape}");
        assert_eq!(stage.read("img").len(), bytes, "{shape}");
    }
}

#[test]
fn what_no_device_is_or_holds_is_refused() {
    let stage = Stage::new();
    for shape in ["512,16", "512,16,3", "500,16,16", "512,1,16", "512,16,16,15", "512,16,16,3,4000000", "131072,16,16"]
    {
        stage.refused(&["init", "img", "--device", shape], 1, &[]);
    }
    let without = ["init", "img", "--device", "512,16,16", "--counter", "none", "--cipher", "ascon-aead128"];
    stage.refused(&without, 1, &["salted"]);
    stage.refused(&["init", "img", "--device", "512,16,16", "--page-size", "512"], 1, &[]);
    stage.refused(&["init", ":memory:", "--device", "512,16,16"], 1, &["file"]);
    stage.refused(&["init", "img", "--salted"], 1, &["--device"]);
    assert!(!stage.path("img").exists() && !stage.path("img.creating").exists());
    stage.good(&["init", "img", "--device", "512,16,16", "--counter", "none", "--salted"]);
    stage.refused(&["kv", "img", "put", "#1", "k"], 3, &["is not here"]);
    stage.good(&["counter", "adopt", "img", "--yes"]);
    stage.good(&["kv", "img", "put", "#1", "k"]);
    stage.refused(&["kv", "img", "put", "a name", "k"], 1, &["no names"]);
    stage.write("large", [7; 600]);
    stage.refused(&["kv", "img", "put", "#1", "large"], 1, &["longer", "bytes fit at most"]);
    stage.refused(&["kv", "img", "put", "#99999999", "k"], 1, &["smaller"]);
    stage.good(&["init", "named", "--device", "512,16,16,3,10"]);
    stage.refused(&["kv", "named", "put", "#9", "k"], 1, &["#10 belong to names"]);
}

#[test]
fn commands_that_want_tables_say_what_works() {
    let (stage, chip) = with_image();
    for words in [
        &["img", "SELECT 1"][..],
        &["compact", "img"],
        &["purge", "img"],
        &["backup", "img", "b"],
        &["salvage", "img", "d"],
        &["key", "list", "img"],
        &["export", "img", "t", "-"],
    ] {
        stage.refused(words, 1, &["image of a device", "(img)", "`kv`, `inspect`, `verify` and `counter`"]);
    }
    stage.refused(&["inspect", "img", "--svg", "x"], 1, &["no picture"]);
    assert!(chip.dump() == stage.read("img"));
}

/// A device lets 118 changes wait, in a list of 120, and goes on with that list after a host has written.
#[test]
fn a_host_lets_no_more_changes_wait_than_the_device_has_room_for() {
    let mut chip = Chip::new(NAND, SHAPE, Suite::AsconAead128);
    let filled = chip.make::<u16, _>(|store| {
        [200, 300].into_iter().try_for_each(|first| {
            let changes: Vec<_> = (first..first + 59).map(|id| (RecordId(id), Some(&b"x"[..]))).collect();
            store.commit(&changes).map(drop)
        })
    });
    filled.expect("filled");
    let stage = Stage::new();
    stage.write("img", chip.dump());
    stage.write("value", "y");
    stage.good(&["counter", "adopt", "img", "--yes"]);
    for id in 1000..1005 {
        let counted = needed(&stage.run(&["kv", "img", "put", &format!("#{id}"), "value"]));
        chip.load(&stage.read("img"), counted);
        assert_eq!(chip.open::<u16, _>(|store| store.read(RecordId(id), &mut [0; 512])), Ok(1), "{id}");
    }
    assert_eq!(stage.good(&["kv", "img", "list"]).lines().count(), 2 * 59 + 5);
}

/// A reader sees what is there before or after, and takes no writer for a thief.
#[test]
fn an_image_is_read_beside_its_writer() {
    let (stage, _) = with_image();
    stage.write("value", "x");
    stage.good(&["counter", "adopt", "img", "--yes"]);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(stage.good(&["kv", "img", "list", "song", "--require-counter"]), "song/a\nsong/b\n");
                }
            });
        }
        (0..40).for_each(|_| drop(stage.good(&["kv", "img", "put", "song/a", "value"])));
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
