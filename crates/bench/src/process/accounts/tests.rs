use super::*;

#[test]
fn resident_memory_is_the_proportional_set_size() {
    let rollup = "0000-ffff ---p 00000000 00:00 0   [rollup]\nRss:    1536 kB\nPss:     900 kB\nPss_Dirty: 96 kB\n";
    assert_eq!(proportional(rollup), 900 * 1024);
    assert_eq!(proportional(""), 0);
    assert!(resident(std::process::id() as i32) > 0);
}

#[test]
fn cpu_time_of_ended_children_is_found_behind_any_name() {
    let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 99 88 0 0 3 4 50 60 20 0 1 0 100 0 0";
    assert_eq!(waited_ticks(stat), 110);
    assert_eq!(waited_ticks(""), 0);
}
