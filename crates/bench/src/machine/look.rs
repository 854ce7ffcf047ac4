//! What /proc and /sys tell about this machine.

use std::collections::BTreeMap;
use std::fs;

const CPUS: &str = "/sys/devices/system/cpu";

/// A file's only line; None where there is no such file, or nothing in it.
pub fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|line| !line.is_empty())
}

pub fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    field(&info, "model name").map_or("unknown CPU".to_string(), str::to_string)
}

pub fn load() -> f64 {
    line("/proc/loadavg")
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

pub fn memory_bytes() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = field(&info, "MemTotal")?.strip_suffix("kB")?.trim();
    Some(kib.parse::<u64>().ok()? * 1024)
}

/// Whether the first two CPUs share a core.
pub fn one_core(cpus: &[usize]) -> Option<bool> {
    let &[first, second, ..] = cpus else {
        return None;
    };
    let siblings = |cpu| line(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"));
    Some(siblings(first)? == siblings(second)?)
}

/// That of the first two CPUs, or both.
pub fn governor(cpus: &[usize]) -> Option<String> {
    let governor = |cpu: &usize| line(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"));
    let mut names: Vec<String> = cpus.iter().take(2).filter_map(governor).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// What is done about each weakness that this CPU has.
pub fn mitigations() -> BTreeMap<String, String> {
    let Ok(files) = fs::read_dir(format!("{CPUS}/vulnerabilities")) else {
        return BTreeMap::new();
    };
    files
        .flatten()
        .filter_map(|file| {
            let text = line(file.path().to_str()?)?;
            let name = file.file_name().into_string().ok()?;
            Some((name, mitigation(&text)?))
        })
        .collect()
}

/// The first thing that is done; None where the CPU is not affected.
fn mitigation(text: &str) -> Option<String> {
    const LONGEST: usize = 60;
    let text = text.strip_prefix("Mitigation: ").unwrap_or(text);
    let first = text.split([';', ',']).next().unwrap_or(text).trim();
    (first != "Not affected").then(|| first.chars().take(LONGEST).collect())
}

/// Its name, where this is a virtual machine, and that of whoever runs it, where known.
pub fn hypervisor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_virtual = field(&info, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let kind = line("/sys/hypervisor/type")
        .or_else(|| is_virtual.then(signature)?)
        .or_else(|| is_virtual.then(|| "unknown".to_string()))?;
    let maker = line("/sys/class/dmi/id/sys_vendor");
    let product = line("/sys/class/dmi/id/product_name");
    let about: Vec<String> = [maker, product].into_iter().flatten().collect();
    Some(match about.is_empty() {
        true => kind,
        false => format!("{kind} ({})", about.join(" ")),
    })
}

/// As hypervisors sign themselves to programs that ask the CPU.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    hypervisor_name(&bytes)
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn hypervisor_name(signature: &[u8]) -> Option<String> {
    let text: String = signature
        .iter()
        .map(|&byte| byte as char)
        .filter(char::is_ascii_graphic)
        .collect();
    let name = match text.as_str() {
        "" => return None,
        "KVMKVMKVM" => "KVM",
        "MicrosoftHv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU without KVM",
        "bhyvebhyve" => "bhyve",
        other => other,
    };
    Some(name.to_string())
}

/// The first value of `name` in lines of "name : value".
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (head, value) = line.split_once(':')?;
        (head.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests;
