use super::*;
use std::io::Write;

#[test]
fn counters_of_all_processes_are_summed_and_unknown_ones_ignored() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(
            file,
            r#"{{"pid":1,"comm":"a","accelerated":2,"fallback":1,"fallback_reasons":{{"no-offer":1}},"doorbells":3,"new":9}}"#
        )
        .unwrap();
    writeln!(
        file,
        r#"{{"pid":2,"accelerated":1,"fallback_reasons":{{"no-offer":2}}}}"#
    )
    .unwrap();
    writeln!(file, "half a li").unwrap();
    let counters = Counters::read(file.path());
    assert_eq!(
        (counters.accelerated, counters.doorbells, counters.processes),
        (3, 3, 2)
    );
    assert_eq!(counters.fallback_reasons["no-offer"], 3);
}

#[test]
fn a_count_alone_is_no_proof_when_the_kernel_saw_the_bytes() {
    let counted = Counters {
        accelerated: 1,
        ..Counters::default()
    };
    let one = Proof::Carried { ends: 1 };
    assert_eq!(judge(one, &counted, 1.0, Some(400.0)), Carried::Yes);
    assert_eq!(
        judge(one, &counted, 300.0, Some(400.0)),
        Carried::SeenByKernel
    );
    assert_eq!(judge(one, &counted, 300.0, None), Carried::Yes);
    let counted_only = Proof::Counted { ends: 1 };
    assert_eq!(
        judge(counted_only, &counted, 300.0, Some(400.0)),
        Carried::Yes
    );
    let none = Counters::default();
    assert_eq!(judge(counted_only, &none, 1.0, None), Carried::NotCounted);
    let two = Proof::Carried { ends: 2 };
    assert_eq!(judge(two, &counted, 1.0, Some(400.0)), Carried::NotCounted);
}

#[test]
fn a_library_that_has_nothing_to_carry_must_still_have_spoken() {
    let silent = Counters::default();
    let spoke = Counters {
        processes: 1,
        ..Counters::default()
    };
    assert_eq!(judge(Proof::Loaded, &silent, 0.0, None), Carried::NotLoaded);
    assert_eq!(judge(Proof::Loaded, &spoke, 0.0, None), Carried::Yes);
    assert_eq!(judge(Proof::None, &silent, 0.0, None), Carried::Yes);
}

#[test]
fn datagrams_through_shared_memory_leave_the_device_quiet() {
    let spoke = Counters {
        processes: 2,
        ..Counters::default()
    };
    let of = |size, loopback| judge(Proof::Quiet { size }, &spoke, loopback, Some(92.0));
    assert_eq!(of(64, 1.0), Carried::Yes);
    assert_eq!(of(64, 92.0), Carried::SeenByKernel);
    // By the kernel, 64 of them in one packet.
    assert_eq!(of(1, 1.44), Carried::SeenByKernel);
    let silent = judge(Proof::Quiet { size: 64 }, &Counters::default(), 0.0, None);
    assert_eq!(silent, Carried::NotLoaded);
}
