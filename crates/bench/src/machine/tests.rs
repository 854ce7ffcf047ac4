use super::*;

#[test]
fn a_report_has_a_line_for_whatever_is_known() {
    let little = Machine {
        cpu: "Some CPU".to_string(),
        cpus: vec![0, 1],
        ..Machine::default()
    };
    let heads: Vec<&str> = little.lines().into_iter().map(|(head, _)| head).collect();
    assert_eq!(
        heads,
        [
            "CPU",
            "CPUs",
            "kernel",
            "network",
            "load at the start",
            "headwater"
        ]
    );
    let more = Machine {
        one_core: Some(true),
        memory_bytes: Some(8 << 30),
        mitigations: [("meltdown", "PTI"), ("spectre_v2", "Retpolines")]
            .map(|(name, what)| (name.to_string(), what.to_string()))
            .into(),
        calibration: Calibration {
            wake_ns: Some(25_000.0),
            copy_cached: Some(4.2e10),
            ..Calibration::default()
        },
        ..little
    };
    let lines: BTreeMap<&str, String> = more.lines().into_iter().collect();
    assert_eq!(lines["CPUs"], "2, the first two on one core");
    assert_eq!(lines["memory"], "8.00 GiB");
    assert_eq!(
        lines["mitigations"],
        "meltdown: PTI; spectre_v2: Retpolines"
    );
    assert_eq!(lines["waking an idle CPU"], "25.0 µs");
    assert_eq!(lines["copying in the cache"], "42.0 GB/s");
}

#[test]
fn an_older_report_tells_less_of_its_machine() {
    let older = r#"{"cpu":"x","kernel":"6.1","cpus":[0,1],"congestion":"cubic","own_network":true,"load":0.5,"version":"0.1.0"}"#;
    let machine: Machine = serde_json::from_str(older).unwrap();
    assert_eq!((machine.cpus.len(), machine.hypervisor), (2, None));
    assert_eq!(machine.calibration, Calibration::default());
}

#[test]
fn this_machine_survives_being_written_and_read() {
    let machine = Machine {
        cpu: look::cpu(),
        mitigations: look::mitigations(),
        hypervisor: look::hypervisor(),
        memory_bytes: look::memory_bytes(),
        calibration: Calibration {
            syscall_ns: Some(101.5),
            ..Calibration::default()
        },
        ..Machine::default()
    };
    let text = serde_json::to_string(&machine).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
}
