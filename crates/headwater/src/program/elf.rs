//! What an ELF file says about how it is loaded.

use std::fs::File;
use std::path::Path;

use headwater_host::image::{MACHINE, SANITIZERS};
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Sym, SymbolTable};
use object::{Endianness, FileKind, ReadCache, ReadRef};

use super::Obstacle;

/// What keeps a preloaded library out of this file; `None` too when it is not an ELF file or can't be read.
pub fn obstacle(path: &Path) -> Option<Obstacle> {
    let cache = ReadCache::new(File::open(path).ok()?);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf64 => {}
        FileKind::Elf32 => return Some(Obstacle::Bits32),
        _ => return None,
    }
    let image = Image::parse(&cache).ok()?;
    if image.machine.0 != MACHINE {
        return Some(Obstacle::Machine);
    }
    match &image.interpreter {
        None if image.is_go => Some(Obstacle::StaticGo),
        Some(_) if image.is_go => Some(Obstacle::Go),
        // A loader called as a program preloads for what it loads.
        None if is_glibc_loader(&file_name(path)) => None,
        None => Some(Obstacle::Static),
        Some(loader) => of_loader(loader).or(image.sanitizer.map(Obstacle::Sanitizer)),
    }
}

struct Image {
    machine: elf::Machine,
    interpreter: Option<String>,
    is_go: bool,
    sanitizer: Option<&'static str>,
}

impl Image {
    fn parse<'data>(data: impl ReadRef<'data>) -> object::read::Result<Image> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let mut interpreter = None;
        for segment in header.program_headers(endian, data)? {
            if let Some(path) = segment.interpreter(endian, data)? {
                interpreter = Some(String::from_utf8_lossy(path).into_owned());
            }
        }
        // Sections may have been stripped; then it is taken for a plain static program.
        let has = |name: &[u8]| {
            header
                .sections(endian, data)
                .is_ok_and(|sections| sections.section_by_name(endian, name).is_some())
        };
        Ok(Image {
            machine: header.e_machine(endian),
            interpreter,
            is_go: has(b".go.buildinfo") || has(b".note.go.buildid"),
            sanitizer: sanitizer(header, endian, data).unwrap_or_default(),
        })
    }
}

/// By the names that the loader sees.
fn sanitizer<'data>(
    header: &FileHeader64<Endianness>,
    endian: Endianness,
    data: impl ReadRef<'data>,
) -> object::read::Result<Option<&'static str>> {
    let symbols = dynamic_symbols(header, endian, data)?;
    for symbol in symbols.iter() {
        let name = symbol.name(endian, symbols.strings())?;
        if let Some((_, sanitizer)) = SANITIZERS.iter().find(|(init, _)| init.to_bytes() == name) {
            return Ok(Some(sanitizer));
        }
    }
    Ok(None)
}

fn dynamic_symbols<'data, R: ReadRef<'data>>(
    header: &FileHeader64<Endianness>,
    endian: Endianness,
    data: R,
) -> object::read::Result<SymbolTable<'data, FileHeader64<Endianness>, R>> {
    let sections = header.sections(endian, data)?;
    sections.symbols(endian, data, elf::SHT_DYNSYM)
}

/// What a shared object of this machine defines for others; `None` of any other file.
pub fn defined(path: &Path) -> Option<Vec<String>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine(endian).0 != MACHINE {
        return None;
    }
    let symbols = dynamic_symbols(header, endian, &cache).ok()?;
    let there = symbols.iter().filter(|symbol| !symbol.is_undefined(endian));
    let names = there.filter_map(|symbol| symbol.name(endian, symbols.strings()).ok());
    Some(
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect(),
    )
}

fn of_loader(loader: &str) -> Option<Obstacle> {
    let name = file_name(Path::new(loader));
    if name.starts_with("ld-musl") {
        Some(Obstacle::Musl(name))
    } else if is_glibc_loader(&name) {
        None
    } else {
        Some(Obstacle::Loader(name))
    }
}

fn is_glibc_loader(name: &str) -> bool {
    name.starts_with("ld-linux") || name.starts_with("ld64.so") || name == "ld.so"
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_are_told_apart_by_name() {
        assert_eq!(of_loader("/lib64/ld-linux-x86-64.so.2"), None);
        assert_eq!(
            of_loader("/lib/ld-musl-x86_64.so.1"),
            Some(Obstacle::Musl("ld-musl-x86_64.so.1".to_string()))
        );
        assert!(matches!(
            of_loader("/system/bin/linker64"),
            Some(Obstacle::Loader(_))
        ));
    }

    #[test]
    fn garbage_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cut");
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for len in [0, 3, 16, 40, 64, 100, 500] {
            std::fs::write(&path, &own[..len]).unwrap();
            let found = obstacle(&path);
            assert!(found.is_none(), "{len} bytes: {found:?}");
        }
    }
}
