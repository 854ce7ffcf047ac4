use super::*;

const TICK: f64 = 1e7;

const BEFORE: &str = "\
cpu  3571889 2164897 1428772 6757999 55036 0 123288 14710 0 0
cpu0 1818217 1061710 765528 3323998 14755 0 67376 7456 0 0
cpu1 1753671 1103186 663243 3434001 40280 0 55911 7254 0 0
intr 101133633 0 0
ctxt 1
";

/// So many ticks later, on each CPU: used, idle, waited for a disk, served interrupts, stolen.
fn after(spent: [[u64; 5]; 2]) -> String {
    let [a, b] = spent;
    format!(
        "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 {} 1061710 765528 {} {} 0 {} {} 0 0\ncpu1 {} 1103186 663243 {} {} 0 {} {} 0 0\n",
        1818217 + a[0],
        3323998 + a[1],
        14755 + a[2],
        67376 + a[3],
        7456 + a[4],
        1753671 + b[0],
        3434001 + b[1],
        40280 + b[2],
        55911 + b[3],
        7254 + b[4],
    )
}

fn disturbed(cpus: &[usize], spent: [[u64; 5]; 2], seconds: f64, own: f64) -> Option<Disturbance> {
    let before = Times::parse(BEFORE, cpus).unwrap();
    let spent = Times::parse(&after(spent), cpus).unwrap().since(before);
    judge(&spent.unwrap(), seconds * 1e9, own * 1e9, TICK)
}

#[test]
fn what_our_own_programs_use_disturbs_nobody() {
    let both = [[40, 0, 0, 0, 0]; 2];
    assert_eq!(disturbed(&[0, 1], both, 0.4, 0.79), None);
    let mostly_idle = [[3, 30, 5, 2, 0], [0, 40, 0, 0, 0]];
    assert_eq!(disturbed(&[0, 1], mostly_idle, 0.4, 0.02), None);
}

#[test]
fn a_program_that_shares_a_cpu_with_ours_disturbs() {
    let both = [[40, 0, 0, 0, 0]; 2];
    let found = disturbed(&[0, 1], both, 0.4, 0.6).unwrap();
    assert!((found.foreign - 0.25).abs() < 1e-9 && found.stolen == 0.0);
    // Nobody looks at the second CPU.
    let second = [[2, 38, 0, 0, 0], [40, 0, 0, 0, 0]];
    assert_eq!(disturbed(&[0], second, 0.4, 0.02), None);
    assert!(disturbed(&[0, 1], second, 0.4, 0.02).is_some());
}

#[test]
fn stolen_time_disturbs_and_is_nobodys_use() {
    let stolen = [[36, 0, 0, 0, 4], [0, 40, 0, 0, 0]];
    let found = disturbed(&[0, 1], stolen, 0.4, 0.36).unwrap();
    assert!((found.stolen - 0.05).abs() < 1e-9 && found.foreign < 1e-9);
    assert_eq!(
        found.to_string(),
        "of the CPU time 5 % was stolen and 0 % was used by other programs"
    );
}

#[test]
fn interrupts_are_nobodys() {
    let network = [[20, 0, 0, 20, 0], [20, 5, 0, 15, 0]];
    assert_eq!(disturbed(&[0, 1], network, 0.4, 0.4), None);
}

#[test]
fn a_short_sample_is_not_suspected_for_what_was_cut_off() {
    // A tick too little on each CPU.
    assert_eq!(disturbed(&[0, 1], [[9, 0, 0, 0, 0]; 2], 0.1, 0.18), None);
    assert_eq!(
        disturbed(&[0, 1], [[9, 0, 0, 0, 1], [10, 0, 0, 0, 0]], 0.1, 0.19),
        None
    );
    // A program that never rests is seen in it all the same.
    assert!(disturbed(&[0, 1], [[10, 0, 0, 0, 0]; 2], 0.1, 0.1).is_some());
    assert!(disturbed(&[0, 1], [[8, 0, 0, 0, 2], [10, 0, 0, 0, 0]], 0.1, 0.18).is_some());
}

#[test]
fn a_long_sample_may_have_a_little_company() {
    assert_eq!(
        disturbed(&[0, 1], [[500, 500, 0, 0, 2]; 2], 10.0, 9.2),
        None
    );
    assert!(disturbed(&[0, 1], [[500, 500, 0, 0, 2]; 2], 10.0, 8.2).is_some());
    assert!(disturbed(&[0, 1], [[500, 480, 0, 0, 20]; 2], 10.0, 9.9).is_some());
}

#[test]
fn what_cannot_be_read_disturbs_nobody() {
    assert_eq!(Times::parse("", &[0]), None);
    assert_eq!(Times::parse(BEFORE, &[7]), None);
    assert_eq!(Times::parse("cpu0 1 2 3\n", &[0]), None);
    let [one, two] = [&[0][..], &[0, 1]].map(|cpus| Times::parse(BEFORE, cpus).unwrap());
    assert_eq!((one.cpus, two.cpus), (1, 2));
    assert_eq!(two.since(one), None);
    assert_eq!(one.since(two), None);
}

#[test]
fn this_machine_can_be_watched() {
    let watch = Watch::start(&[0, 1, 2, 3]);
    assert!(watch.before.is_some());
    let _ = watch.stop(0);
}
