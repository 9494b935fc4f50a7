"""Schemas that others have published: where they come from, and how they are collected.

Packages of PyPI have them as serialized descriptors in their Python code; Debian's packages of protobuf and PyPI's
grpcio-tools install .proto files. The packages are installed into .build-protoc. No code of theirs is run.
"""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = ROOT / ".build-protoc/packages"

# The packages of each set, in the versions that were looked at.
COMMON = "googleapis-common-protos==1.76.0"
OPENTELEMETRY = "opentelemetry-proto==1.45.2"
SETS = {
    "protobuf": [],
    "google": [COMMON, OPENTELEMETRY, "grpc-google-iam-v1==0.14.6", "grpcio-channelz==1.85.0",
               "grpcio-health-checking==1.85.1", "grpcio-reflection==1.85.1"],
    "xds": [COMMON, OPENTELEMETRY, "xds-protos==1.85.0"],
    "temporal": [COMMON, "temporalio==1.35.0"],
    "tensorboard": ["tensorboard==2.21.0"],
    "streamlit": ["streamlit==1.67.0"],
    "onnx": ["onnx==1.23.2"],
    "feast": ["feast==0.67.0"],
    "cirq": [COMMON, "cirq-google==1.7.0"],
    "mlflow": [OPENTELEMETRY, "mlflow-skinny==3.17.2"],
}

# Files that are left out, and why.
LEFT_OUT = {
    "dependencies/gogoproto/gogo.proto": "temporalio imports it, and does not have it",
    "temporal/api/enums/v1/interaction_type.proto": "temporalio imports it, and does not have it",
    "tunits/proto/tunits.proto": "cirq-google imports it, and no package that can be installed has it",
}

# The schemas whose code Lifeline's own modules contain.
SHIPPED = {f"google/protobuf/{name}.proto" for name in (
    "any", "api", "compiler/plugin", "descriptor", "duration", "empty", "field_mask", "source_context", "struct",
    "timestamp", "type", "wrappers")}


def protos_of_protoc() -> Path:
    """The folder of the newer protoc's .proto files. The package protobuf, which reads descriptors, comes with it."""
    protos = Path(output_of(["codegen/newer-protoc", "--proto-folder"]).strip())
    sys.path.insert(0, str(protos.parent.parent))
    sys.dont_write_bytecode = True
    return protos


def collect(name: str, protos: Path, work: Path) -> dict:
    """Writes the descriptors of a set to the file `set`, and returns them by file name."""
    from google.protobuf import descriptor_pb2
    own = sorted(str(path.relative_to(protos)) for path in protos.rglob("*.proto"))
    run(["codegen/newer-protoc", f"-I{protos}", "-I/usr/include", "--include_imports",
         f"--descriptor_set_out={work}/own", *own, "protobuf-c/protobuf-c.proto"])
    files = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString((work / "own").read_bytes()).file}
    for package in SETS[name]:
        serialized_files = list(descriptors(install(package)))
        if not serialized_files:
            raise SystemExit(f"{package} has no serialized descriptors where this script looks for them.")
        for serialized in serialized_files:
            file = descriptor_pb2.FileDescriptorProto.FromString(serialized)
            files.setdefault(file.name, file)
    chosen = in_order(files)
    (work / "set").write_bytes(descriptor_pb2.FileDescriptorSet(file=chosen.values()).SerializeToString())
    return chosen


def install(package: str) -> Path:
    folder = INSTALLED / package
    if not folder.exists():
        # Under another name first, so that half a package is never taken for a whole one.
        partial = folder.with_name(f"{package}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        run([sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action", "ignore", "--no-deps",
             "--only-binary=:all:", "--target", partial, package])
        partial.rename(folder)
    return folder


def descriptors(folder: Path) -> Iterator[bytes]:
    """The arguments of AddSerializedFile in Python code that protoc has generated."""
    for path in sorted(folder.rglob("*_pb2.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "AddSerializedFile" and isinstance(node.args[0], ast.Constant)):
                yield node.args[0].value


def in_order(files: dict) -> dict:
    """Sorts the files so that imports come first. Drops files of LEFT_OUT and all files that import them."""
    for name in LEFT_OUT:
        if name in files:
            raise SystemExit(f"{name} is in a package after all: take it off LEFT_OUT.")
    ordered: dict = {}
    left_out: set[str] = set()

    def visit(name: str, importer: str) -> bool:
        if name in ordered:
            return True
        if name in LEFT_OUT or name in left_out:
            return False
        if name not in files:
            raise SystemExit(f"{importer} imports {name}, which is in no package of the set.")
        if not all(visit(other, name) for other in files[name].dependency):
            left_out.add(name)
            return False
        ordered[name] = files[name]
        return True

    for name in sorted(files):
        visit(name, name)
    for name in sorted(left_out):
        reasons = [f"{other}: {LEFT_OUT[other]}" for other in files[name].dependency if other in LEFT_OUT]
        print(f"left out: {name} imports {'; '.join(reasons) or 'one that is left out'}")
    return ordered


def run(command: list, may_fail: bool = False) -> bool:
    passed = subprocess.run(command).returncode == 0
    if not passed and not may_fail:
        raise SystemExit(f"failed: {' '.join(map(str, command))[:500]}")
    return passed


def output_of(command: list) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
