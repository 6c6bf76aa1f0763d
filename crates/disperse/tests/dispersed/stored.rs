//! A folder answers as memory does, whatever was told twice, cut, changed or put back.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question, Strings};
use counterfoil_disperse::{Failure, Folder, MemoryProvider, Provider, Secret, Store, StoredProvider};
use proptest::prelude::*;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn table() -> Name {
    name("t0000000000000001")
}

fn fragments(places: &[u64]) -> Fragments {
    let mut strings = Strings::default();
    places.iter().for_each(|place| strings.push(&place.to_be_bytes()[..(place % 9) as usize]));
    let shares = places.iter().map(|place| place.wrapping_mul(77) >> 3).collect();
    let columns =
        vec![(name("c0000000000000001"), Data::Strings(strings)), (name("c0000000000000002"), Data::Shares(shares))];
    Fragments { places: places.to_vec(), columns }
}

fn folder(path: &Path) -> StoredProvider<Folder> {
    StoredProvider::new(Folder(path.to_owned()), Secret::new([5; 32]))
}

/// All rows with their fragments by place, how many were added up, and their sum.
type Said = (Vec<(u64, Vec<u8>)>, u64, u64);

fn asked(provider: &dyn Provider) -> Result<Said, Failure> {
    let columns = vec![name("c0000000000000001")];
    let question = Question { columns: columns.clone(), sums: vec![name("c0000000000000002")], ..Question::default() };
    let (mut rows, mut added, mut sum) = (Vec::new(), 0, 0_u128);
    provider.ask(&table(), &question, &mut |answer: Answer| {
        let Some(Data::Strings(strings)) = answer.rows.column(&columns[0]) else { panic!("a column of strings") };
        rows.extend(answer.rows.places.iter().copied().zip(strings.iter().map(<[u8]>::to_vec)));
        added += answer.added;
        sum += answer.sums.iter().map(|sum| u128::from(*sum)).sum::<u128>();
        Ok(())
    })?;
    rows.sort_unstable();
    Ok((rows, added, (sum % ((1 << 61) - 1)) as u64))
}

fn files(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.join(table().as_str())).expect("the table's folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_folder_is_what_memory_is(steps in prop::collection::vec((any::<bool>(), prop::collection::btree_set(0_u64..60, 1..20)), 1..12)) {
        let (path, memory) = (tempfile::tempdir().expect("a folder"), MemoryProvider::default());
        for (puts, places) in steps {
            let places: Vec<u64> = places.into_iter().collect();
            for provider in [&folder(path.path()) as &dyn Provider, &memory] {
                match puts {
                    true => provider.put(&table(), &fragments(&places)).expect("put"),
                    false => provider.remove(&table(), &places).expect("removed"),
                }
            }
            prop_assert_eq!(asked(&folder(path.path())), asked(&memory));
        }
        folder(path.path()).drop_table(&table()).expect("dropped");
        prop_assert!(!path.path().join(table().as_str()).exists());
    }
}

#[test]
fn what_was_not_written_here_is_not_read() {
    let path = tempfile::tempdir().expect("a folder");
    folder(path.path()).put(&table(), &fragments(&[1, 2, 3])).expect("put");
    let before = asked(&folder(path.path())).expect("an answer");
    // Files of others, and what a cut left, are passed over.
    let own = path.path().join(table().as_str());
    fs::write(own.join("notes.txt"), "hello").expect("a file");
    fs::write(own.join("00.parquet.part"), "PAR1").expect("a file");
    assert_eq!(asked(&folder(path.path())), Ok(before));
    // Of any file that carries a name of ours each byte counts.
    let file = files(path.path()).into_iter().find(|path| path.extension().is_some_and(|end| end == "parquet"));
    let file = file.expect("a file of rows");
    let whole = fs::read(&file).expect("its bytes");
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 4;
        fs::write(&file, changed).expect("a changed file");
        assert!(matches!(asked(&folder(path.path())), Err(Failure::Malformed(_))), "byte {at}");
    }
    fs::write(&file, &whole[..whole.len() / 2]).expect("half a file");
    assert!(matches!(asked(&folder(path.path())), Err(Failure::Malformed(_))));
    // Another owner's key: the file is somebody else's.
    fs::write(&file, &whole).expect("the file");
    let other = StoredProvider::new(Folder(path.path().to_owned()), Secret::new([6; 32]));
    assert!(matches!(asked(&other), Err(Failure::Malformed(_))));
    // A cut between the new file and the end of the old one leaves rows twice, of which one counts.
    folder(path.path()).put(&table(), &fragments(&[2, 3])).expect("put");
    assert_eq!(asked(&folder(path.path())).map(|(rows, added, _)| (rows.len(), added)), Ok((3, 3)));
}

#[test]
fn what_is_no_file_or_too_large_is_told_and_not_waited_for() {
    let path = tempfile::tempdir().expect("a folder");
    folder(path.path()).put(&table(), &fragments(&[1, 2, 3])).expect("put");
    let own = path.path().join(table().as_str());
    let name = own.join(format!("{}-00001000-00000100.parquet", "0".repeat(32)));
    // It is damage of that one file, and what is in the others is shown.
    let shown = || {
        let mut places = 0;
        let told = folder(path.path()).ask(&table(), &Question::default(), &mut |answer| {
            places += answer.rows.places.len();
            Ok(())
        });
        (told.is_err(), places)
    };
    // A pipe that nobody writes to, a folder, and a file of a name of ours that has no end.
    let made = std::process::Command::new("mkfifo").arg(&name).status().expect("mkfifo");
    assert!(made.success());
    assert!(matches!(asked(&folder(path.path())), Err(Failure::Malformed(_))));
    assert_eq!(shown(), (true, 3));
    fs::remove_file(&name).expect("removed");
    fs::create_dir(&name).expect("a folder");
    assert!(matches!(asked(&folder(path.path())), Err(Failure::Malformed(_))));
    assert_eq!(shown(), (true, 3));
    fs::remove_dir(&name).expect("removed");
    fs::File::create(&name).and_then(|file| file.set_len(1 << 31)).expect("a file of nothing");
    assert!(matches!(asked(&folder(path.path())), Err(Failure::Malformed(_))));
    fs::remove_file(&name).expect("removed");
    assert!(asked(&folder(path.path())).is_ok());
}

#[test]
fn a_folder_that_is_not_there_is_out_of_reach() {
    let path = tempfile::tempdir().expect("a folder");
    let gone = folder(&path.path().join("unmounted"));
    assert!(matches!(gone.put(&table(), &fragments(&[1])), Err(Failure::Unreachable(_))));
    assert!(matches!(asked(&gone), Err(Failure::Unreachable(_))));
    assert!(!path.path().join("unmounted").exists());
}

/// A folder that has no room for more.
struct Full(Folder);

impl Store for Full {
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        self.0.list(folder)
    }

    fn get(&self, folder: &str, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, Failure> {
        self.0.get(folder, name, range)
    }

    fn put(&self, _: &str, _: &str, _: &[u8]) -> Result<(), Failure> {
        Err(Failure::Refused("no room".into()))
    }

    fn delete(&self, folder: &str, name: &str) -> Result<(), Failure> {
        self.0.delete(folder, name)
    }

    fn delete_folder(&self, folder: &str) -> Result<(), Failure> {
        self.0.delete_folder(folder)
    }
}

#[test]
fn where_there_is_no_room_whole_files_go_and_make_some() {
    let path = tempfile::tempdir().expect("a folder");
    let there = || asked(&folder(path.path())).expect("an answer").0.into_iter().map(|(place, _)| place);
    for places in [&[1, 2][..], &[3, 4], &[5, 6], &[7]] {
        folder(path.path()).put(&table(), &fragments(places)).expect("put");
    }
    let full = StoredProvider::new(Full(Folder(path.path().to_owned())), Secret::new([5; 32]));
    assert!(matches!(full.remove(&table(), &[1, 3, 4, 6, 7]), Err(Failure::Refused(_))));
    // Of files that rows are left of, nothing has gone; it is told again.
    assert_eq!(there().collect::<Vec<_>>(), [1, 2, 5, 6]);
    folder(path.path()).remove(&table(), &[1, 3, 4, 6, 7]).expect("removed");
    assert_eq!(there().collect::<Vec<_>>(), [2, 5]);
}
