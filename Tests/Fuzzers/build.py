"""Builds the fuzzers, each as one program, with the compilers of the Swift toolchain."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FUZZERS = ROOT / "Tests/Fuzzers"
# Another clang may lack tail calls, or the libraries of the Swift toolchain's clang.
CLANG = Path(shutil.which("swift") or sys.exit("Swift is not installed.")).resolve().with_name("clang")
C_SOURCES = ["Sources/CLifelineMessages", "Sources/CLifelineWellKnownTypes", "Sources/CLifelineDescriptorTypes",
             "Tests/CTestProtos"]
C_FLAGS = ["-std=c11", "-g", "-O1", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror",
           "-fno-sanitize-recover=all"]
SANITIZERS = "address,undefined"
COVERAGE = "edge,inline-8bit-counters,pc-table,trace-cmp"


def build(name: str, folder: Path) -> Path:
    """Builds the fuzzer `name` below `folder` and returns the program."""
    return build_swift(name, folder) if (FUZZERS / f"{name.capitalize()}Main").exists() else build_c(name, folder)


def build_c(name: str, folder: Path) -> Path:
    sources = [source for top in C_SOURCES for source in sorted((ROOT / top).rglob("*.c"))]
    sources += [FUZZERS / "Engine" / file for file in (f"{name}.c", "fuzz_input.c", "fuzz_tables.c", "fuzz_textual.c")]
    # An object has to be newer than all of these: any header may be included in it, and this file has the flags.
    depended_on = [path for top in [*C_SOURCES, "Tests/Fuzzers/Engine"] for path in (ROOT / top).rglob("*.[ch]")]
    newest = max(path.stat().st_mtime for path in [*depended_on, Path(__file__)])
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda source: compile_c(source, folder, newest), sources))
    program = folder / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    run([CLANG, "-fuse-ld=lld", f"-fsanitize=fuzzer,{SANITIZERS}", *objects, "-lprotobuf-c", "-o", program])
    return program


def compile_c(source: Path, folder: Path, newest: float) -> Path:
    output = folder / "objects" / source.relative_to(ROOT).with_suffix(".o")
    if output.exists() and output.stat().st_mtime > newest:
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    headers = [f"-I{ROOT / top / 'include'}" for top in C_SOURCES]
    headers.append(f"-I{ROOT / C_SOURCES[0]}")  # what the engine's files share: utf8.h
    run([CLANG, f"-fsanitize=fuzzer-no-link,{SANITIZERS}", *C_FLAGS, *headers, "-c", source, "-o", output])
    return output


def build_swift(name: str, folder: Path) -> Path:
    resources = Path(output_of([CLANG, "-print-resource-dir"]))
    driver = next(resources.rglob("libclang_rt.fuzzer_no_main*.a"))
    command = [ROOT / "scripts/swiftpm", "build", "--package-path", FUZZERS, "--scratch-path", folder / "swift",
               "--configuration", "release", "--product", name, "--sanitize=address",
               "-Xswiftc", f"-sanitize-coverage={COVERAGE}", "-Xcc", f"-fsanitize-coverage={COVERAGE}",
               # The toolchain's default, gold, warns of the sanitizer's own symbols.
               "-Xswiftc", "-use-ld=lld", "-Xswiftc", "-warnings-as-errors",
               "-Xlinker", driver, "-Xlinker", "-lstdc++"]
    run(command)
    return Path(output_of([*command, "--show-bin-path"])) / name


def run(command: list) -> None:
    if subprocess.run(command).returncode != 0:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")


def output_of(command: list) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
