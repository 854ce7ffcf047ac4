use super::*;

#[test]
fn a_mitigation_is_cut_to_its_first_words() {
    let cut = |text| mitigation(text).unwrap();
    assert_eq!(mitigation("Not affected"), None);
    assert_eq!(cut("Mitigation: PTI"), "PTI");
    assert_eq!(
        cut("Mitigation: Retpolines; STIBP: disabled; RSB filling"),
        "Retpolines"
    );
    assert_eq!(
        cut("Vulnerable: Safe RET, no microcode"),
        "Vulnerable: Safe RET"
    );
    assert_eq!(cut(&"x".repeat(200)).len(), 60);
}

#[test]
fn hypervisors_are_known_by_their_signatures() {
    let name = |signature: &[u8]| hypervisor_name(signature);
    assert_eq!(name(b"KVMKVMKVM\0\0\0").as_deref(), Some("KVM"));
    assert_eq!(name(b"Microsoft Hv").as_deref(), Some("Hyper-V"));
    assert_eq!(name(b"ACRNACRNACRN").as_deref(), Some("ACRNACRNACRN"));
    assert_eq!(name(&[0; 12]), None);
}

#[test]
fn fields_are_found_by_their_whole_names() {
    let info = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n";
    assert_eq!(field(info, "model name"), Some("AMD EPYC"));
    assert_eq!(field(info, "model"), Some("17"));
    assert_eq!(field(info, "stepping"), None);
}

#[test]
fn one_cpu_shares_its_core_with_nobody() {
    assert_eq!(one_core(&[0]), None);
    assert_eq!(one_core(&[]), None);
}
