//! Programs under the library, with one of the library's own system calls made to fail.
//!
//! The program is traced (ptrace(2)). Where a call is made from within the library's text, it is the library's own: what it passes
//! through for the program, it passes to the C library. Of those that may fail ([`faults`]) the `n`th in all processes of the
//! program is not made, and gives the error instead; with [`Plan::lasting`], so do all later ones of its kind, as where something
//! has run out. With [`Plan::kills`] its process is killed there.
//!
//! With [`Plan::allocates`] it is the `n`th allocation, at which a breakpoint stops: it finds nothing in store, and gets nothing from
//! the kernel; what comes after it does, unless that lasts.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use syscalls::Sysno;

mod faults;
mod memory;
mod stop;

pub use memory::Starved;
use stop::Call;

/// Which call fails, and how.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Counted from 1; 0: none.
    pub at: u64,
    /// Picks among the errors that are possible there.
    pub error: u64,
    /// All later calls of the same kind fail too.
    pub lasting: bool,
    /// All of the library's own calls count, and instead of making that one its process is killed.
    pub kills: bool,
    /// From that call on there is no memory to be had either, and nothing of what the library has in store is left.
    pub starved: Option<Starved>,
    /// Allocations count instead of calls: [`Plan::starved`] for that one, or with [`Plan::lasting`] for all from there on.
    pub allocates: bool,
}

impl Plan {
    pub const NONE: Plan = Plan {
        at: 0,
        error: 0,
        lasting: false,
        kills: false,
        starved: None,
        allocates: false,
    };
}

/// For others to end, once one has said enough.
const MOMENT: Duration = Duration::from_secs(1);
/// In the place of a call's number.
const ALLOCATION: i64 = -2;
/// What a breakpoint's signal says (sigaction(2)).
const SI_KERNEL: i32 = 0x80;

/// A call that was made to fail.
#[derive(Clone, Debug)]
pub struct Fault {
    call: Call,
    errno: i32,
    pid: i32,
    /// What on the stack looks like the library's.
    stack: Vec<u64>,
}

#[derive(Debug)]
pub struct Ran {
    /// None: it did not end within the bound.
    pub status: Option<ExitStatus>,
    pub out: String,
    pub err: String,
    /// Calls that may fail, or allocations.
    pub calls: u64,
    pub fault: Option<Fault>,
    /// Signals that ended a process of it or would have.
    pub fatal: Vec<i32>,
}

impl Ran {
    pub fn ended_with(&self) -> String {
        match self.status {
            None => "did not end".to_string(),
            Some(status) => status.to_string(),
        }
    }
}

/// Runs `command`, which has the library preloaded or linked, to its end.
pub fn run(command: Command, folder: &Path, library: &Path, plan: Plan, bound: Duration) -> Ran {
    run_until(command, folder, library, plan, bound, |_| false)
}

/// As [`run`]. A moment after `enough` says so of what it has written on standard output, its processes get SIGALRM: where one has
/// seen an error and ended, others may wait for it.
pub fn run_until(
    mut command: Command,
    folder: &Path,
    library: &Path,
    plan: Plan,
    bound: Duration,
    enough: fn(&str) -> bool,
) -> Ran {
    let file = |kind: &str| folder.join(format!("injected.{kind}"));
    let create = |kind: &str| File::create(file(kind)).expect("the lab's folder is writable");
    command
        .process_group(0)
        .stdout(create("out"))
        .stderr(create("err"));
    // SAFETY: both are system calls.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn().expect("it starts");
    let pid = child.id() as i32;
    let watch = Watch::start(pid, bound, file("out"), enough);
    let mut tracer = Tracer {
        library: library.canonicalize().expect("the library is there"),
        plan,
        tasks: HashMap::from([(pid, Task::default())]),
        spaces: HashMap::from([(pid, Space::default())]),
        calls: 0,
        fault: None,
        failed: 0,
        fatal: Vec::new(),
        instruction: None,
    };
    let status = tracer.follow(pid, &watch);
    // Reaped above; this only forgets it.
    let _ = child.try_wait();
    let late = watch.end();
    let read =
        |kind| String::from_utf8_lossy(&std::fs::read(file(kind)).unwrap_or_default()).into_owned();
    Ran {
        status: status.filter(|_| !late),
        out: read("out"),
        err: read("err"),
        calls: tracer.calls,
        fault: tracer.fault,
        fatal: tracer.fatal,
    }
}

/// Ends the program when its time is over.
struct Watch {
    /// Gone when the program has ended.
    runs: Sender<()>,
    /// Was it over?
    thread: std::thread::JoinHandle<bool>,
}

impl Watch {
    fn start(pid: i32, bound: Duration, out: PathBuf, enough: fn(&str) -> bool) -> Watch {
        let (runs, ended) = channel::<()>();
        let goes_on = move |slice| ended.recv_timeout(slice) == Err(RecvTimeoutError::Timeout);
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut told = false;
            let mut over = false;
            while !over && goes_on(MOMENT) {
                let said = std::fs::read(&out).unwrap_or_default();
                if !told && enough(&String::from_utf8_lossy(&said)) {
                    told = true;
                    if !goes_on(MOMENT) {
                        break;
                    }
                    // SAFETY: the group is the program's, and not reaped while it is traced.
                    unsafe { libc::kill(-pid, libc::SIGALRM) };
                }
                over = begun.elapsed() >= bound;
            }
            if over {
                // SAFETY: the group is the program's, and not reaped while it is traced.
                unsafe { libc::kill(-pid, libc::SIGKILL) };
            }
            over
        });
        Watch { runs, thread }
    }

    fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Was it over?
    fn end(self) -> bool {
        drop(self.runs);
        self.thread.join().expect("it does not panic")
    }
}

/// A traced thread.
#[derive(Default)]
struct Task {
    /// The error that the call under way is to end with.
    failing: Option<i32>,
    /// The library's call under way, where its result is wanted.
    ours: Option<Call>,
    /// The call maps code.
    maps: bool,
    known: bool,
    /// It does the instruction that the breakpoint is in place of.
    stepping: bool,
    /// It stopped at that before it was done.
    again: bool,
    /// Its allocation under way is the one that gets nothing.
    starving: bool,
}

/// A traced process, by its first thread's number.
#[derive(Default, Clone)]
struct Space {
    /// Where the library's text is.
    text: Option<(u64, u64)>,
    /// Where its first byte is.
    base: u64,
    made: faults::Made,
    starving: bool,
    /// Whose memory it is too: a child of vfork(2) has its parent's until it executes something.
    shared_with: Option<i32>,
}

struct Tracer {
    library: PathBuf,
    plan: Plan,
    tasks: HashMap<i32, Task>,
    spaces: HashMap<i32, Space>,
    calls: u64,
    fault: Option<Fault>,
    /// How often it has come.
    failed: u64,
    fatal: Vec<i32>,
    /// The first byte of what is at the breakpoint.
    instruction: Option<u8>,
}

impl Tracer {
    /// Until all of it has ended. The status of the first process.
    fn follow(&mut self, first: i32, watch: &Watch) -> Option<ExitStatus> {
        let mut status = None;
        loop {
            let mut word = 0;
            let how = libc::__WALL | libc::__WNOTHREAD;
            // SAFETY: word is writable.
            let pid = unsafe { libc::waitpid(-1, &mut word, how) };
            if pid < 0 {
                return status;
            }
            if watch.is_over() {
                for &task in self.tasks.keys() {
                    // SAFETY: traced by us, so not reaped.
                    unsafe { libc::kill(task, libc::SIGKILL) };
                }
            }
            if !libc::WIFSTOPPED(word) {
                self.tasks.remove(&pid);
                self.spaces.remove(&pid);
                if pid == first {
                    status = Some(ExitStatus::from_raw(word));
                }
                continue;
            }
            let signal = self.stopped(pid, word);
            match self.tasks.get(&pid).is_some_and(|task| task.stepping) {
                true => stop::step(pid),
                false => stop::go_on(pid, signal),
            }
        }
    }

    /// What a stop is about; the signal to go on with.
    fn stopped(&mut self, pid: i32, word: i32) -> i32 {
        let task = self.tasks.entry(pid).or_default();
        if !task.known {
            task.known = true;
            stop::trace_all(pid);
            // The first one's is of its exec, the others' are of the tracing.
            return 0;
        }
        if self.plan.allocates && self.at_breakpoint(pid, word) {
            return 0;
        }
        match (libc::WSTOPSIG(word), word >> 16) {
            (libc::SIGTRAP, libc::PTRACE_EVENT_EXEC) => {
                self.spaces.insert(pid, Space::default());
            }
            (_, event) if event != 0 => self.begun(pid, event),
            (stop::CALL, _) => self.at_call(pid),
            (signal, _) => {
                if matches!(
                    signal,
                    libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT | libc::SIGILL | libc::SIGFPE
                ) {
                    self.fatal.push(signal);
                }
                return signal;
            }
        }
        0
    }

    fn begun(&mut self, parent: i32, event: i32) {
        if !matches!(
            event,
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE
        ) {
            return;
        }
        let new = stop::message(parent) as i32;
        let group = stop::group(new);
        if group == new {
            let mut space = self.space(parent).cloned().unwrap_or_default();
            space.shared_with = (event == libc::PTRACE_EVENT_VFORK).then(|| stop::group(parent));
            self.spaces.insert(new, space);
        }
    }

    fn space(&mut self, task: i32) -> Option<&mut Space> {
        let group = match self.spaces.contains_key(&task) {
            true => task,
            false => stop::group(task),
        };
        self.spaces.get_mut(&group)
    }

    /// Where allocations are counted: was it one, or the step over the breakpoint?
    fn at_breakpoint(&mut self, pid: i32, word: i32) -> bool {
        let Some(starved) = self.plan.starved else {
            return false;
        };
        let Some(base) = self.space(pid).filter(|s| s.text.is_some()).map(|s| s.base) else {
            return false;
        };
        let is_trap = libc::WSTOPSIG(word) == libc::SIGTRAP && word >> 16 == 0;
        let code = if is_trap { stop::code(pid) } else { 0 };
        let task = self.tasks.entry(pid).or_default();
        if task.stepping {
            task.stepping = false;
            task.again = code != libc::TRAP_TRACE;
            starved.watch(pid, base, &mut self.instruction);
            if code == libc::TRAP_TRACE {
                return true;
            }
        }
        let entry = starved.entry(base);
        let Some((ip, sp)) = stop::pointers(pid).filter(|_| code == SI_KERNEL) else {
            return false;
        };
        if ip != entry + 1 {
            return false;
        }
        let counts = !std::mem::take(&mut task.again);
        task.starving = false;
        task.stepping = true;
        stop::go_to(pid, entry);
        starved.unwatch(pid, base, self.instruction);
        self.calls += u64::from(counts);
        if counts && self.calls == self.plan.at {
            self.starve(pid, entry, sp);
        }
        true
    }

    /// Here is the allocation that gets nothing.
    fn starve(&mut self, pid: i32, ip: u64, sp: u64) {
        let (Some(starved), Some(space)) = (self.plan.starved, self.space(pid).cloned()) else {
            return;
        };
        starved.take_all(pid, space.base);
        let call = Call {
            nr: ALLOCATION,
            args: [0; 6],
            ip: ip - space.base,
            sp,
        };
        self.fault = Some(Fault {
            call,
            errno: libc::ENOMEM,
            pid,
            stack: stop::stack(pid, sp, space.text.unwrap_or_default(), space.base),
        });
        match self.plan.lasting {
            true => self.space(pid).into_iter().for_each(|s| s.starving = true),
            false => self.tasks.entry(pid).or_default().starving = true,
        }
    }

    fn at_call(&mut self, pid: i32) {
        match stop::at(pid) {
            stop::At::Entry(call) => self.entered(pid, call),
            stop::At::Exit(result) => self.left(pid, result),
            stop::At::Elsewhere => {}
        }
    }

    fn entered(&mut self, pid: i32, call: Call) {
        let plan = self.plan;
        let counted = self.calls;
        let failed = self.fault.clone();
        let goes_on = failed
            .as_ref()
            .is_some_and(|f| self.failed < faults::times(&f.call, f.errno));
        let text = self.space(pid).and_then(|space| space.text);
        let inside = text.is_some_and(|(from, to)| (from..to).contains(&call.ip));
        let mut failing = None;
        if plan.allocates {
            let task = self.tasks.entry(pid).or_default();
            let freed = inside && call.nr == libc::SYS_munmap;
            task.starving &= inside && memory::allocates(&call) || freed;
            failing = (task.starving && !freed).then_some(libc::ENOMEM);
        }
        let Some(space) = self.space(pid) else { return };
        if call.nr == libc::SYS_close || call.nr == libc::SYS_dup2 || call.nr == libc::SYS_dup3 {
            let last = if call.nr == libc::SYS_close { 0 } else { 1 };
            space.made.remove(&(call.args[last] as i32));
        }
        let mut is_counted = false;
        if inside && !plan.allocates {
            let errors = faults::of(pid, &call, &space.made);
            is_counted = plan.kills || !errors.is_empty();
            if !errors.is_empty() && counted + 1 == plan.at {
                failing = Some(errors[(plan.error % errors.len() as u64) as usize]);
            } else if plan.lasting && is_counted && goes_on {
                failing = failed
                    .as_ref()
                    .filter(|f| faults::same_kind(&f.call, &call))
                    .map(|f| f.errno);
            }
        }
        let at_fault = inside && is_counted && counted + 1 == plan.at;
        let begins = at_fault || failed.is_some();
        let mut starving = space.starving;
        if let Some(starved) = &plan.starved
            && begins
            && (plan.lasting || !plan.allocates)
            && space.text.is_some()
        {
            if !starving {
                starved.take_all(pid, space.base);
                space.starving = true;
                starving = true;
            }
            failing = (inside && starving && memory::asks(&call)).then_some(libc::ENOMEM);
        }
        let maps = call.nr == libc::SYS_mmap && call.args[2] & libc::PROT_EXEC as u64 != 0;
        let base = space.base;
        let parent = space.shared_with.filter(|_| starving);
        if let Some(parent) = parent.and_then(|p| self.spaces.get_mut(&p)) {
            // The reserve is there once.
            parent.starving = true;
        }
        self.calls += u64::from(is_counted);
        self.failed += u64::from(failing.is_some());
        if at_fault {
            self.fault = Some(Fault {
                call: Call {
                    ip: call.ip - base,
                    ..call
                },
                errno: failing.unwrap_or(libc::ENOMEM),
                pid,
                stack: stop::stack(pid, call.sp, text.unwrap_or_default(), base),
            });
        }
        if at_fault && plan.kills {
            // SAFETY: traced by us, so not reaped.
            unsafe { libc::kill(stop::group(pid), libc::SIGKILL) };
            return;
        }
        let task = self.tasks.entry(pid).or_default();
        task.failing = failing;
        task.ours = inside.then_some(call);
        task.maps = maps;
        if failing.is_some() {
            stop::skip(pid);
        }
    }

    fn left(&mut self, pid: i32, result: i64) {
        let task = self.tasks.entry(pid).or_default();
        let (failing, ours, maps) = (task.failing.take(), task.ours.take(), task.maps);
        task.maps = false;
        if let Some(errno) = failing {
            stop::give(pid, -(errno as i64));
            return;
        }
        let (library, plan) = (self.library.clone(), self.plan);
        let mut begun = None;
        let Some(space) = self.space(pid) else { return };
        if maps
            && space.text.is_none()
            && let Some((base, text)) = stop::text_of(pid, &library)
        {
            (space.base, space.text) = (base, Some(text));
            begun = Some(base);
        }
        if let Some(call) = ours
            && result >= 0
        {
            // A copy is what it is a copy of.
            let of = match call.nr {
                libc::SYS_fcntl => space.made.get(&(call.args[0] as i32)),
                _ => None,
            };
            let of = of.copied().unwrap_or(call.nr);
            let made = faults::made(pid, &call, result);
            space.made.extend(made.into_iter().map(|fd| (fd, of)));
        }
        if plan.allocates
            && let (Some(base), Some(starved)) = (begun, plan.starved)
        {
            starved.watch(pid, base, &mut self.instruction);
        }
    }
}

impl Fault {
    /// May others wait for what never comes, as they would where the network has lost it? A connection that seems to have been refused
    /// or reset, a datagram that has seemed to leave.
    pub fn loses(&self) -> bool {
        // A connection is refused too where nobody can tell whose it is.
        let asks_whose = self.call.nr == libc::SYS_getsockopt
            && self.call.args[1] as i32 == libc::SOL_SOCKET
            && self.call.args[2] as i32 == libc::SO_PEERCRED;
        // And its memory is taken for something else where nobody can tell whether it may change.
        let asks_seals =
            self.call.nr == libc::SYS_fcntl && self.call.args[1] as i32 == libc::F_GET_SEALS;
        asks_whose
            || asks_seals
            || matches!(
                self.call.nr,
                libc::SYS_connect
                    | libc::SYS_accept4
                    | libc::SYS_sendto
                    | libc::SYS_sendmsg
                    | libc::SYS_recvmsg
                    | libc::SYS_recvfrom
            )
    }

    /// The call and, where addr2line(1) is there, who made it.
    pub fn describe(&self, library: &Path) -> String {
        let mut text = format!(
            "{} ({:#x}, {:#x}, {:#x}, {:#x}) of process {} fails with errno {}\n",
            match self.call.nr {
                ALLOCATION => "an allocation",
                nr => Sysno::new(nr as usize).map_or("a call", |nr| nr.name()),
            },
            self.call.args[0],
            self.call.args[1],
            self.call.args[2],
            self.call.args[3],
            self.pid,
            self.errno
        );
        let mut command = Command::new("addr2line");
        command.arg("-Cfpe").arg(library);
        let addresses = std::iter::once(self.call.ip).chain(self.stack.iter().copied());
        command.args(addresses.map(|a| format!("{:#x}", a.saturating_sub(1))));
        if let Ok(said) = command.output() {
            text += &String::from_utf8_lossy(&said.stdout);
        }
        text
    }
}
