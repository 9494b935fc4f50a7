internal import Foundation
internal import LifelineCodegen
internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

// protoc runs this program. It writes the request to standard input and reads the response from standard output.

let usage = """
    protoc-gen-lifeline is a plugin of protoc's: it is run as

      protoc --lifeline_out=Sources --lifeline_opt=SwiftTarget=ChatProtos,CTarget=CChatProtos -IProtos chat.proto

    and writes C and Swift for each .proto file. Parameters:

      SwiftTarget=NAME      the target (and folder) that the Swift goes into
      CTarget=NAME          the target (and folder) that the C goes into
      Visibility=Public|Package|Internal      who may see the Swift; Internal unless told otherwise
      Services=true|false|only      whether services become Swift, or nothing else does; true unless told otherwise
      ModuleMapping=FILE_OR_FOLDER:SWIFT_MODULE:C_MODULE      where imported files were generated; may be repeated

    Methods can have the options (lifeline.call) and (lifeline.synchronous). They are in "lifeline/options.proto", in the
    folder Protos of Lifeline, and are described there.

    It needs protoc-gen-c (Debian: protobuf-c-compiler) on the path, or where LIFELINE_PROTOC_GEN_C says.
    """

switch CommandLine.arguments.dropFirst().first {
case "--help":
    print(usage)
    exit(0)
case "--version":
    print("protoc-gen-lifeline 0.1.0")
    exit(0)
case let argument?:
    FileHandle.standardError.write(Data("protoc-gen-lifeline: unknown argument \(argument)\n\n\(usage)\n".utf8))
    exit(64)
case nil:
    break
}
if isatty(STDIN_FILENO) == 1 {
    FileHandle.standardError.write(Data("\(usage)\n".utf8))
    exit(64)
}

do {
    // readDataToEndOfFile() would trap if standard input is closed.
    let input = try FileHandle.standardInput.readToEnd() ?? Data()
    let request = try Google_Protobuf_Compiler_CodeGeneratorRequest(serializedBytes: input)
    let generator = CodeGenerator(protobufC: .installed(environment: ProcessInfo.processInfo.environment))
    let response: Data = try generator.response(to: request).serializedBytes()
    try FileHandle.standardOutput.write(contentsOf: response)
} catch {
    let message = "protoc-gen-lifeline: standard input is no request of protoc's (\(error)).\n\n\(usage)\n"
    FileHandle.standardError.write(Data(message.utf8))
    exit(65)
}
