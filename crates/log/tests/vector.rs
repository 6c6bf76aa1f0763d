//! The named test vector of SPEC.md, section "log": code and document are held together here.

use std::fmt::Write;
use std::sync::Arc;

use counterfoil_flash::{Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_log::{
    Counting, Layout, Media, NamelessPage, NoPins, PoolOptions, Recovered, Sealing, Settings, View, create,
    record_space,
};
use counterfoil_vault::{
    Counter, DatabaseId, Entropy, Epoch, Kind, MemoryCounter, NoEntropy, Place, Sealed, Suite, Vault, VolumeKey,
    cells_payload,
};

const SPEC: &str = include_str!("../../../SPEC.md");
const SHAPE: Geometry =
    Geometry { page_bytes: 256, block_pages: 8, block_count: 64, erase_before_program: false, grows: true };
const ALLOCATION_OF_SPINE: u64 = 1;
const ALLOCATION_OF_GROUP: u64 = 3;
const ALLOCATION_OF_POOL: u64 = 4;
const EPOCH: Epoch = Epoch { number: 2, salt: [0x22; 16] };

/// A generator that gives the same byte for ever.
struct Always(u8);

impl Entropy for Always {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.fill(self.0);
        Ok(())
    }
}

fn vault() -> Arc<Vault> {
    let mut key = [0; 32];
    (0..).zip(&mut key).for_each(|(place, byte)| *byte = place);
    Arc::new(Vault::new(&VolumeKey::from_bytes(&key), DatabaseId([0x11; 32]), Suite::Aes256GcmSiv))
}

fn page(device: &MemoryDevice, number: u64) -> Vec<u8> {
    let mut page = vec![0; 256];
    device.read(PageNumber(number), 0, &mut page).expect("reads");
    page
}

/// What a page holds, without the zeros behind it.
fn plain(device: &MemoryDevice, number: u64, kind: Kind, allocation: u64, position: u32) -> Vec<u8> {
    let mut page = page(device, number);
    let sealed = |page| Sealed::from_medium(page);
    let payload = match kind {
        Kind::Cells => {
            vault().cell_key(&EPOCH).page(allocation, position).open_page(&mut page, 10).expect("opens");
            page[..cells_payload(256, 10)].to_vec()
        }
        Kind::Opening => {
            vault().open_opening(allocation, position, 0, sealed(&mut page)).expect("opens").payload().to_vec()
        }
        Kind::Nameless => {
            let key = vault().page_key(kind, allocation, &EPOCH);
            // The first write is number 1, at position 0.
            key.open_nameless(position, u64::from(position) + 1, sealed(&mut page)).expect("opens").payload().to_vec()
        }
        _ => vault()
            .open(&Place { kind, allocation, position, epoch: EPOCH }, sealed(&mut page))
            .expect("opens")
            .payload()
            .to_vec(),
    };
    let used = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    payload[..used].to_vec()
}

/// A named text of hex digits, as the document has it.
fn shown(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("{name}\n");
    for line in bytes.chunks(64) {
        line.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a text takes everything"));
        text.push('\n');
    }
    text
}

#[test]
fn the_pages_of_the_vector_are_those_of_the_specification() {
    let device = MemoryDevice::new(SHAPE).expect("a device");
    let layout = Layout::new(&SHAPE, 8, 8).expect("a layout");
    let counter: Box<dyn Counter + Send> = Box::new(MemoryCounter::at(0, Some([0; 16])));
    let settings =
        Settings { counter: Some(counter), counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device.clone()) };
    let mut writer = create(media, vault(), layout, settings, &mut Always(0x22), 0, 1 << 16).expect("created");
    writer.begin().expect("begins");
    let group = writer.create_group().expect("a group");
    let container = writer.create_container(group).expect("a container");
    writer.append(container, b"hello").expect("appends");
    writer.put_record(record_space::USER, b"name", b"counterfoil").expect("put");
    writer.commit().expect("commits");
    writer.begin().expect("begins");
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(writer.append(container, &bytes).expect("appends"), 5);
    writer.commit().expect("commits");
    writer.begin().expect("begins");
    let pool = writer.create_pool(PoolOptions { free_percent: 10 }).expect("a pool");
    let pages = [0, 1, 2].map(|page| writer.write_nameless(pool, &[page; 240]).expect("writes"));
    assert_eq!(pages[2], NamelessPage { page: 2, write: 3 });
    writer.free_nameless(pool, pages[1]).expect("frees");
    writer.commit().expect("commits");
    writer.begin().expect("begins");
    writer.free_nameless(pool, pages[0]).expect("frees");
    writer.commit().expect("commits");
    writer.begin().expect("begins");
    let cells = writer.create_container_sealed(group, Sealing::Cells).expect("a container");
    writer.append(cells, &bytes[..160]).expect("appends");
    writer.commit().expect("commits");
    writer.begin().expect("begins");
    let sectors = writer.create_container_sealed(group, Sealing::Sectors).expect("a container");
    writer.append(sectors, &bytes[..240]).expect("appends");
    writer.commit().expect("commits");

    let text = [
        shown("page 144, opening root", &page(&device, 144)),
        shown("page 144, opened", &plain(&device, 144, Kind::Opening, ALLOCATION_OF_SPINE, 0)),
        shown("page 145, frame", &page(&device, 145)),
        shown("page 145, opened", &plain(&device, 145, Kind::Frame, ALLOCATION_OF_SPINE, 1)),
        shown("page 160, container", &page(&device, 160)),
        shown("page 160, opened", &plain(&device, 160, Kind::Container, ALLOCATION_OF_GROUP, 0)),
        shown("page 146, frame", &page(&device, 146)),
        shown("page 146, opened", &plain(&device, 146, Kind::Frame, ALLOCATION_OF_SPINE, 2)),
        shown("page 170, nameless", &page(&device, 170)),
        shown("page 170, opened", &plain(&device, 170, Kind::Nameless, ALLOCATION_OF_POOL, 2)),
        shown("page 147, opened", &plain(&device, 147, Kind::Frame, ALLOCATION_OF_SPINE, 3)),
        shown("page 148, opened", &plain(&device, 148, Kind::Frame, ALLOCATION_OF_SPINE, 4)),
        shown("page 161, cells", &page(&device, 161)),
        shown("page 161, opened", &plain(&device, 161, Kind::Cells, ALLOCATION_OF_GROUP, 1)),
        shown("page 150, opened", &plain(&device, 150, Kind::Frame, ALLOCATION_OF_SPINE, 6)),
        shown("page 162, sectors", &page(&device, 162)),
        shown("page 162, opened", &plain(&device, 162, Kind::Sector, ALLOCATION_OF_GROUP, 2)),
        shown("page 151, opened", &plain(&device, 151, Kind::Frame, ALLOCATION_OF_SPINE, 7)),
    ];
    let text = text.concat();
    assert!(SPEC.contains(&format!("```\n{text}```\n")), "the vector is\n{text}");

    let recovered = Recovered::recover(Arc::new(device), vault(), layout, 1 << 16).expect("recovers");
    assert_eq!((recovered.version(), recovered.commit().0), (8, 7));
    let snapshot = recovered.snapshot();
    assert_eq!(snapshot.length(container).expect("is there"), 261);
    let mut read = [0; 240];
    snapshot.read_nameless(pool, pages[2], &mut read).expect("reads");
    assert_eq!((read, snapshot.pools()), ([2; 240], vec![(pool, 1)]));
    let mut piece = [0; 20];
    snapshot.read(cells, 140, &mut piece).expect("reads");
    assert_eq!((snapshot.length(cells).expect("is there"), piece.as_slice()), (160, &bytes[140..160]));
    assert_eq!(snapshot.record(record_space::USER, b"name").as_deref(), Some(&b"counterfoil"[..]));
}
