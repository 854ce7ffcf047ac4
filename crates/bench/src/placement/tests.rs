use super::*;

#[test]
fn one_cpu_cannot_be_shared_out() {
    let offered: Vec<_> = Placement::offered(&[3]).collect();
    assert_eq!(
        offered,
        [Placement::Same, Placement::Free, Placement::SameBusy]
    );
    assert_eq!(Placement::Same.client_cpu(&[3]), Some(3));
}

#[test]
fn apart_means_two_cpus_of_those_allowed() {
    let cpus = [2, 5, 7];
    assert_eq!(Placement::Apart.server_cpu(&cpus), Some(2));
    assert_eq!(Placement::Apart.client_cpu(&cpus), Some(5));
    assert_eq!(Placement::Free.client_cpu(&cpus), None);
    assert_eq!(Placement::Apart.cpus(&cpus), [2, 5]);
    assert_eq!(Placement::SameBusy.cpus(&cpus), [2]);
    assert_eq!(Placement::Free.cpus(&cpus), cpus);
}
