//! The counter: what it holds after every step, cut and theft, and what it says where it is not to be believed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use counterfoil_vault::{
    Counter, CounterError, CounterKind, CounterValue, DangerFixedEntropy, DatabaseId, Entropy, HostCounter, Suite, Tpm,
    TpmCounter, Vault, VolumeKey,
};

use sha2::{Digest, Sha256};

use crate::swtpm::{Interposer, Swtpm, by_the_owner};

fn vault(id: u8, key: u8) -> Vault {
    Vault::new(&VolumeKey::from_bytes(&[key; 32]), DatabaseId([id; 32]), Suite::Aes256GcmSiv)
}

fn counter(tpm: &Tpm) -> TpmCounter {
    TpmCounter::new(tpm, None, &vault(2, 1))
}

fn value(value: u64, tag: u8) -> Result<CounterValue, CounterError> {
    Ok(CounterValue { value, tag: Some([tag; 16]) })
}

#[test]
fn a_counter_counts_and_remembers() {
    let Some(mut swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    assert_eq!(counter(&tpm).value(), Err(CounterError::Absent));
    assert_eq!(counter(&tpm).step(1, &[1; 16]), Err(CounterError::Absent));
    assert_eq!(counter(&tpm).forget(), Err(CounterError::Absent));
    counter(&tpm).adopt(0, &[0; 16]).unwrap();
    assert_eq!(counter(&tpm).value(), value(0, 0));
    for to in 1..=5 {
        counter(&tpm).step(to, &[to as u8; 16]).unwrap();
        counter(&tpm).step(to, &[to as u8; 16]).unwrap();
        assert_eq!(counter(&tpm).value(), value(to, to as u8));
    }
    swtpm.restart();
    assert_eq!(counter(&tpm).value(), value(5, 5));
    let record = counter(&tpm).record().unwrap();
    assert!(record.time > 1_700_000_000 && record.rollbacks == 0);
    assert_eq!(counter(&tpm).adopt(4, &[4; 16]), Err(CounterError::Lower { present: 5, asked: 4 }));
    counter(&tpm).adopt(1_000_000, &[9; 16]).unwrap();
    assert_eq!(counter(&tpm).value(), value(1_000_000, 9));
    counter(&tpm).step(1_000_001, &[10; 16]).unwrap();
    counter(&tpm).forget().unwrap();
    assert_eq!(counter(&tpm).value(), Err(CounterError::Absent));
}

#[test]
fn it_goes_up_by_one_for_one_commit() {
    let Some(swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    let (mut one, mut two) = (counter(&tpm), counter(&tpm));
    one.adopt(5, &[5; 16]).unwrap();
    two.value().unwrap();
    one.step(6, &[1; 16]).unwrap();
    assert_eq!(two.step(6, &[2; 16]), Err(CounterError::OtherCommit { value: 6 }));
    assert_eq!(two.step(8, &[2; 16]), Err(CounterError::Skipped { present: 6, asked: 8 }));
    one.step(7, &[1; 16]).unwrap();
    assert_eq!(two.step(6, &[1; 16]), Err(CounterError::Lower { present: 7, asked: 6 }));
    assert_eq!(two.value(), value(7, 1));
    assert_eq!(counter(&tpm).kind(), CounterKind::Tpm);
}

#[test]
fn writers_of_two_copies_keep_each_other_out() {
    let Some(swtpm) = Swtpm::new() else { return };
    let (tpm, directory) = (swtpm.tpm(), swtpm.folder.path().join("locks"));
    let handle = || TpmCounter::new(&tpm, Some(&directory), &vault(2, 1));
    let mut one = handle();
    one.adopt(5, &[5; 16]).unwrap();
    let mut two = handle();
    assert_eq!(two.value(), value(5, 5), "reading takes no lock");
    assert!(matches!(two.step(6, &[6; 16]), Err(CounterError::Held { .. })));
    assert!(matches!(two.forget(), Err(CounterError::Held { .. })));
    drop(one);
    two.step(6, &[6; 16]).unwrap();
}

#[test]
fn what_it_was_told_of_rollbacks_is_kept_until_it_is_told_otherwise() {
    let Some(swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    counter(&tpm).adopt(5, &[5; 16]).unwrap();
    let mut handle = counter(&tpm);
    handle.set_rollbacks(3);
    assert_eq!(counter(&tpm).record().unwrap().rollbacks, 0, "nothing is written before it moves");
    handle.adopt(7, &[7; 16]).unwrap();
    counter(&tpm).step(8, &[8; 16]).unwrap();
    counter(&tpm).adopt(20, &[9; 16]).unwrap();
    assert_eq!(counter(&tpm).record().unwrap().rollbacks, 3);
}

#[test]
fn another_tpm_or_none_has_no_counter() {
    let Some(mut swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    let mut open = counter(&tpm);
    open.adopt(5, &[5; 16]).unwrap();
    swtpm.kill();
    assert!(matches!(open.value(), Err(CounterError::Device { .. })), "it is there and does not answer");
    std::fs::remove_dir_all(swtpm.state()).unwrap();
    swtpm.start();
    assert_eq!(open.value(), Err(CounterError::Absent));
    assert_eq!(open.step(6, &[6; 16]), Err(CounterError::Absent));
    let nowhere = Tpm::at(std::path::Path::new("/nowhere/tpm"));
    assert_eq!(counter(&nowhere).value(), Err(CounterError::Absent));
    let not_found = CounterError::Device { operation: "found", code: 2 };
    assert_eq!(counter(&nowhere).adopt(1, &[1; 16]), Err(not_found));
}

#[test]
fn an_older_tpm_put_back_while_it_is_open_is_noticed() {
    let Some(mut swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    let mut open = counter(&tpm);
    open.adopt(5, &[5; 16]).unwrap();
    swtpm.kill();
    swtpm.keep_state("older");
    swtpm.start();
    open.step(6, &[6; 16]).unwrap();
    swtpm.put_back_state("older");
    assert!(matches!(open.value(), Err(CounterError::WentBack { .. })));
    assert!(matches!(open.step(7, &[7; 16]), Err(CounterError::WentBack { .. })));
    assert_eq!(counter(&tpm).value(), value(5, 5), "nobody else can know: the TPM itself is what is trusted");
}

#[test]
fn without_the_volume_key_nobody_makes_one_that_answers() {
    let Some(swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    counter(&tpm).adopt(7, &[7; 16]).unwrap();
    let mut other = TpmCounter::new(&tpm, None, &vault(2, 9));
    assert_eq!(other.value(), Err(CounterError::Foreign));
    assert_eq!(other.step(8, &[8; 16]), Err(CounterError::Foreign));
    // Whoever owns the TPM can take the place of the counter, but not answer for it.
    other.adopt(3, &[3; 16]).unwrap();
    assert_eq!(counter(&tpm).value(), Err(CounterError::Foreign));
    assert_eq!(counter(&tpm).step(8, &[8; 16]), Err(CounterError::Foreign));
    counter(&tpm).adopt(8, &[8; 16]).unwrap();
    assert_eq!(counter(&tpm).value(), value(8, 8));
    // Neighbours do not disturb each other.
    let mut neighbour = TpmCounter::new(&tpm, None, &vault(3, 1));
    assert_eq!(neighbour.value(), Err(CounterError::Absent));
    neighbour.adopt(1, &[1; 16]).unwrap();
    neighbour.forget().unwrap();
    assert_eq!(counter(&tpm).value(), value(8, 8));
}

const UNDEFINE: u32 = 0x122;
const DEFINE: u32 = 0x12A;
const READ: u32 = 0x14E;
const INCREMENT: u32 = 0x134;
const OWNER: u32 = 0x4000_0001;

/// Where the indices are that the database's name gives.
fn first_handle(id: u8) -> u32 {
    let label = Sha256::new().chain_update(b"counterfoil/tpm/counter\0").chain_update([id; 32]).finalize();
    let number = u32::from_be_bytes(label[..4].try_into().unwrap());
    0x0180_0000 + 4 * (number % (1 << 20))
}

#[test]
fn a_missing_index_is_told_and_mended_by_adoption_alone() {
    let Some(swtpm) = Swtpm::new() else { return };
    let (tpm, handle) = (swtpm.tpm(), first_handle(2));
    for (missing, expected) in [(1, CounterError::Damaged), (2, CounterError::Damaged), (0, CounterError::Absent)] {
        counter(&tpm).adopt(10, &[1; 16]).unwrap();
        counter(&tpm).adopt(10, &[2; 16]).unwrap();
        assert_eq!(by_the_owner(&tpm, UNDEFINE, &[OWNER, handle + missing], &[]), 0);
        // One of the slots is not the one that holds: that is noticed at the step.
        let (mut open, found) = (counter(&tpm), counter(&tpm).value());
        assert!(found == Err(expected) || open.step(11, &[3; 16]) == Err(expected), "{missing}: {found:?}");
        assert!(counter(&tpm).value() == Err(expected) || counter(&tpm).value() == value(10, 2));
        counter(&tpm).adopt(10, &[4; 16]).unwrap();
        counter(&tpm).step(11, &[5; 16]).unwrap();
        counter(&tpm).step(12, &[5; 16]).unwrap();
        counter(&tpm).forget().unwrap();
    }
}

/// An index of somebody else's.
fn define(tpm: &Tpm, handle: u32, bytes: u16) -> u32 {
    let mut public = handle.to_be_bytes().to_vec();
    public.extend([0, 0x0B, 0x02, 0x04, 0, 0x04, 0, 0]);
    public.extend(bytes.to_be_bytes());
    let mut parameters = vec![0, 0, 0, public.len() as u8];
    parameters.extend(public);
    by_the_owner(tpm, DEFINE, &[OWNER], &parameters)
}

#[test]
fn others_may_have_its_place() {
    let Some(swtpm) = Swtpm::new() else { return };
    let (tpm, handle) = (swtpm.tpm(), first_handle(2));
    assert_eq!(define(&tpm, handle, 8), 0);
    assert_eq!(define(&tpm, handle + 4 + 2, 8), 0);
    assert_eq!(counter(&tpm).value(), Err(CounterError::Absent));
    counter(&tpm).adopt(1, &[1; 16]).unwrap();
    assert_eq!(counter(&tpm).value(), value(1, 1));
    assert_eq!(by_the_owner(&tpm, UNDEFINE, &[OWNER, handle], &[]), 0);
    counter(&tpm).step(2, &[2; 16]).unwrap();
    counter(&tpm).forget().unwrap();
    for place in 0..8 {
        let _ = define(&tpm, handle + 4 * place, 8);
    }
    assert!(matches!(counter(&tpm).adopt(1, &[1; 16]), Err(CounterError::Device { code: 0, .. })));
}

#[test]
fn a_full_tpm_says_so_and_loses_nothing() {
    let Some(swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    let database = |id| TpmCounter::new(&tpm, None, &vault(id, 1));
    database(2).adopt(1, &[1; 16]).unwrap();
    // Somebody's certificates, of smaller and smaller size.
    let mut handle = 0x0190_0000;
    for bytes in [2048, 256, 16] {
        while define(&tpm, handle, bytes) == 0 {
            handle += 1;
        }
    }
    let full = |outcome| matches!(outcome, Err(CounterError::Device { code: -0x14B, .. }));
    assert!(full(database(3).adopt(1, &[1; 16])));
    assert!(matches!(database(3).value(), Err(CounterError::Absent)));
    assert_eq!(database(2).value(), value(1, 1));
    database(2).step(2, &[2; 16]).unwrap();
    database(2).forget().unwrap();
    database(3).adopt(1, &[1; 16]).unwrap();
    database(3).step(2, &[2; 16]).unwrap();
    assert!(full(database(2).adopt(2, &[2; 16])));
    assert_eq!(database(3).value(), value(2, 2));
}

#[test]
fn an_owner_with_a_password_is_asked_for_it() {
    let Some(swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    counter(&tpm).adopt(1, &[1; 16]).unwrap();
    const CHANGE_PASSWORD: u32 = 0x129;
    assert_eq!(by_the_owner(&tpm, CHANGE_PASSWORD, &[OWNER], b"\0\x03own"), 0);
    // What is there goes on without it; what is to be made does not.
    counter(&tpm).step(2, &[2; 16]).unwrap();
    assert!(matches!(counter(&tpm).forget(), Err(CounterError::Device { code: ..0, .. })));
    let owned = swtpm.tpm().owned_by(b"own");
    counter(&owned).forget().unwrap();
    assert!(matches!(counter(&tpm).adopt(1, &[1; 16]), Err(CounterError::Device { code: ..0, .. })));
    counter(&owned).adopt(1, &[1; 16]).unwrap();
    assert_eq!(counter(&tpm).value(), value(1, 1));
}

/// Plays `script` with the bus cut at every command in turn, before the TPM has it or after, and the TPM's power with it.
fn cut_everywhere(script: fn(&Tpm) -> Result<(), CounterError>, check: fn(&Tpm, bool)) {
    for after in [false, true] {
        for at in 1.. {
            let Some(mut swtpm) = Swtpm::new() else { return };
            counter(&swtpm.tpm()).adopt(5, &[5; 16]).unwrap();
            let mut count = 0;
            let bus = Interposer::before(
                &swtpm,
                Box::new(move |_, command, ask| {
                    count += 1;
                    (count >= at).then(|| {
                        if after && count == at {
                            ask(command);
                        }
                        vec![]
                    })
                }),
            );
            let done = script(&bus.tpm());
            if bus.commands.load(Ordering::Relaxed) < at {
                assert!(at > 5 && done.is_ok());
                break;
            }
            swtpm.restart();
            check(&swtpm.tpm(), done.is_ok());
        }
    }
}

#[test]
fn a_step_cut_at_any_command_leaves_the_old_value_or_the_new() {
    let check = |tpm: &Tpm, done: bool| {
        let found = counter(tpm).value();
        assert!(found == value(6, 6) || (found == value(5, 5) && !done), "{found:?}");
        if found == value(5, 5) {
            // The commit after the cut need not be the one before it.
            counter(tpm).step(6, &[60; 16]).unwrap();
        }
        counter(tpm).step(7, &[7; 16]).unwrap();
        assert_eq!(counter(tpm).value(), value(7, 7));
    };
    cut_everywhere(|tpm| counter(tpm).step(6, &[6; 16]), check);
}

#[test]
fn an_adoption_cut_at_any_command_leaves_the_old_value_or_the_new() {
    let check = |tpm: &Tpm, done: bool| {
        let found = counter(tpm).value();
        assert!(found == value(900, 6) || (found == value(5, 5) && !done), "{found:?}");
        counter(tpm).adopt(900, &[7; 16]).unwrap();
        counter(tpm).step(901, &[8; 16]).unwrap();
    };
    cut_everywhere(|tpm| counter(tpm).adopt(900, &[6; 16]), check);
}

#[test]
fn a_first_adoption_cut_at_any_command_is_done_again() {
    let script = |tpm: &Tpm| TpmCounter::new(tpm, None, &vault(3, 1)).adopt(1, &[1; 16]);
    let check = |tpm: &Tpm, done: bool| {
        let mut counter = TpmCounter::new(tpm, None, &vault(3, 1));
        let found = counter.value();
        let unmade = matches!(found, Err(CounterError::Absent | CounterError::Damaged));
        assert!(found == value(1, 1) || (unmade && !done), "{found:?}");
        counter.adopt(2, &[2; 16]).unwrap();
        counter.step(3, &[3; 16]).unwrap();
        counter.forget().unwrap();
        assert_eq!(counter.value(), Err(CounterError::Absent));
        // Nothing of it is left to take up room.
        (0..3).for_each(|index| assert_eq!(define(tpm, first_handle(3) + index, 8), 0));
    };
    cut_everywhere(script, check);
}

/// What `counter` answers when this happens to the answers about it.
fn meddled(swtpm: &Swtpm, wanted: u32, mut change: impl FnMut(&mut Vec<u8>) + Send + 'static) -> TpmCounter {
    let meddle = move |code, command: &[u8], ask: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
        let mut answer = ask(command);
        if code == wanted {
            change(&mut answer);
        }
        Some(answer)
    };
    counter(&Interposer::before(swtpm, Box::new(meddle)).tpm())
}

#[test]
fn nobody_in_between_answers_for_it() {
    let Some(swtpm) = Swtpm::new() else { return };
    counter(&swtpm.tpm()).adopt(5, &[5; 16]).unwrap();
    // Bits of every answer; every fifth, so that in time each place in a byte comes up.
    let mut flipped_bits = 0;
    for bit in (0..).step_by(5) {
        let flipped = Arc::new(AtomicUsize::new(0));
        let (counted, mut reached) = (flipped.clone(), 0);
        let found = meddled(&swtpm, READ, move |answer| {
            let start = reached;
            reached += answer.len() * 8;
            // Not its length: a longer answer would be waited for.
            if (start..reached).contains(&bit) && !(16..48).contains(&(bit - start)) {
                answer[(bit - start) / 8] ^= 1 << (bit % 8);
                counted.fetch_add(1, Ordering::Relaxed);
            }
            counted.fetch_add(usize::from(bit < reached) << 16, Ordering::Relaxed);
        })
        .value();
        match flipped.load(Ordering::Relaxed) {
            0 => break,
            seen if seen & 0xFFFF == 0 => assert_eq!(found, value(5, 5)),
            _ => assert!(found.is_err(), "bit {bit}: {found:?}"),
        }
        flipped_bits += 1;
    }
    assert!(flipped_bits > 300, "{flipped_bits}");
    assert_eq!(counter(&swtpm.tpm()).value(), value(5, 5));
}

#[test]
fn an_answer_of_yesterday_is_not_believed_today() {
    let Some(swtpm) = Swtpm::new() else { return };
    counter(&swtpm.tpm()).adopt(5, &[5; 16]).unwrap();
    let kept = Arc::new(Mutex::new(vec![]));
    let keep = kept.clone();
    let before = meddled(&swtpm, READ, move |answer| keep.lock().unwrap().push(answer.clone())).value();
    assert_eq!(before, value(5, 5));
    counter(&swtpm.tpm()).step(6, &[6; 16]).unwrap();
    let mut answers = kept.lock().unwrap().clone().into_iter();
    let mut open = meddled(&swtpm, READ, move |answer| answers.next().into_iter().for_each(|old| *answer = old));
    assert_eq!(open.value(), Err(CounterError::Damaged));
    // Without its session an answer needs no MAC: it is not an answer to us.
    let mut open = meddled(&swtpm, READ, |answer| {
        let value = answer[14..24].to_vec();
        *answer = [&[0x80, 1, 0, 0, 0, 20, 0, 0, 0, 0], &value[..]].concat();
    });
    assert!(matches!(open.value(), Err(CounterError::Device { .. })));
}

#[test]
fn a_step_that_somebody_swallows_is_noticed() {
    let Some(swtpm) = Swtpm::new() else { return };
    counter(&swtpm.tpm()).adopt(5, &[5; 16]).unwrap();
    let kept = Arc::new(Mutex::new(vec![]));
    let keep = kept.clone();
    meddled(&swtpm, INCREMENT, move |answer| *keep.lock().unwrap() = answer.clone()).step(6, &[6; 16]).unwrap();
    let swallow = move |code, _: &[u8], _: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
        (code == INCREMENT).then(|| kept.lock().unwrap().clone())
    };
    let mut open = counter(&Interposer::before(&swtpm, Box::new(swallow)).tpm());
    assert_eq!(open.step(7, &[7; 16]), Err(CounterError::Damaged));
    assert_eq!(counter(&swtpm.tpm()).value(), value(6, 6));
}

#[test]
fn noise_in_place_of_answers_is_a_typed_error() {
    let Some(mut swtpm) = Swtpm::new() else { return };
    counter(&swtpm.tpm()).adopt(5, &[5; 16]).unwrap();
    for seed in 0..100 {
        let (mut entropy, mut count) = (DangerFixedEntropy::seeded(seed), 0);
        let noise = move |_, command: &[u8], ask: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
            count += 1;
            let mut answer = ask(command);
            if count == 1 + seed % 12 {
                let mut random = [0; 3];
                entropy.fill(&mut random).unwrap();
                let bytes = usize::from(random[0]) + 10;
                // A head that is believed, and behind it either noise or the answer cut short.
                answer.resize(bytes.min(if random[1] % 2 == 0 { answer.len() } else { bytes }).max(10), 0);
                let length = (answer.len() as u32).to_be_bytes();
                answer[2..6].copy_from_slice(&length);
                if random[2] % 2 == 0 {
                    entropy.fill(&mut answer[10..]).unwrap();
                }
            }
            Some(answer)
        };
        let bus = Interposer::before(&swtpm, Box::new(noise));
        let found = counter(&bus.tpm()).value();
        assert!(found.is_err() || found == value(5, 5), "{seed}: {found:?}");
        // A session whose handle was lost stays open until the TPM is started anew, and there are few.
        swtpm.restart();
        assert_eq!(counter(&swtpm.tpm()).value(), value(5, 5));
    }
}

#[test]
fn a_tpm_that_asks_for_another_try_gets_one() {
    let Some(swtpm) = Swtpm::new() else { return };
    counter(&swtpm.tpm()).adopt(5, &[5; 16]).unwrap();
    let mut tries = 0;
    let busy = move |_, _: &[u8], _: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
        tries += 1;
        // Written too often; testing itself; again.
        let code = [0x20, 0x0A, 0x22][tries % 3];
        (tries % 4 != 0).then(|| vec![0x80, 1, 0, 0, 0, 10, 0, 0, 9, code])
    };
    counter(&Interposer::before(&swtpm, Box::new(busy)).tpm()).step(6, &[6; 16]).unwrap();
    assert_eq!(counter(&swtpm.tpm()).value(), value(6, 6));
}

#[test]
fn a_step_takes_twelve_commands() {
    let Some(swtpm) = Swtpm::new() else { return };
    counter(&swtpm.tpm()).adopt(5, &[5; 16]).unwrap();
    let commands = |work: &dyn Fn(&Tpm)| {
        let bus = Interposer::before(&swtpm, Box::new(|_, _, _| None));
        let begun = Instant::now();
        work(&bus.tpm());
        println!("{:.1} ms", begun.elapsed().as_secs_f64() * 1000.0);
        bus.commands.load(Ordering::Relaxed)
    };
    assert_eq!(commands(&|tpm| counter(tpm).step(6, &[6; 16]).unwrap()), 12);
    // Two of them write: the slot, then the counter. And to look at it takes six.
    assert_eq!(commands(&|tpm| assert_eq!(counter(tpm).value(), value(6, 6))), 6);
}
