internal import LifelineCore

/// Compiles .proto files, and returns an encoded `google.protobuf.FileDescriptorSet` with them and their imports.
///
/// - Parameters:
///   - folders: the folders to search for imports, before the folder of each file. If there are none, the working
///     folder.
/// - Throws: `CommandFailure` when protoc is missing or finds an error.
func compiledDescriptorSet(ofProtoFiles files: [String], importedFrom folders: [String]) throws(CommandFailure)
    -> [UInt8]
{
    let folders = importFolders(folders, of: files)
    let options = ["--descriptor_set_out=/dev/stdout", "--include_imports", "--include_source_info"]
    // protoc mistakes a name that begins with a dash for an option.
    let paths = files.map { $0.hasPrefix("-") ? "./\($0)" : $0 }
    guard let result = try runProgram("protoc", folders.map { "--proto_path=\($0)" } + options + paths) else {
        throw CommandFailure(
            status: .unavailable,
            message: "--proto needs protoc, which is not installed. Install the package protobuf-compiler (Debian, "
                + "Ubuntu, Fedora) or protobuf (Alpine, Arch), or give a descriptor set with --descriptor-set."
        )
    }
    if result.status == 0 { return result.output }
    let complaints = String(decoding: result.errorOutput, as: UTF8.self).split(separator: "\n")
    for line in complaints.prefix(20) { writeErrorLine("protoc: \(String(line).escaped())") }
    let advice = complaints.contains { $0.contains("not found") } ? " Name the folder of the imports with -I." : ""
    throw CommandFailure(status: .badData, message: "protoc cannot compile \(files.joined(separator: ", ")).\(advice)")
}

private func importFolders(_ given: [String], of files: [String]) -> [String] {
    var folders = given.isEmpty ? ["."] : given
    // protoc refuses files outside these folders. It uses the first folder that contains a file.
    for file in files {
        let folder = file.lastIndex(of: "/").map { $0 == file.startIndex ? "/" : String(file[..<$0]) } ?? "."
        if !folders.contains(folder) { folders.append(folder) }
    }
    return folders
}
