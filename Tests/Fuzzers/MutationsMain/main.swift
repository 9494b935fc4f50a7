internal import CLibFuzzer
internal import Mutations

// libFuzzer calls back for every input; the library has no main.
var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
let status = withUnsafeMutablePointer(to: &arguments) { arguments in
    LLVMFuzzerRunDriver(&count, arguments) { bytes, count in
        run(bytes: [UInt8](UnsafeBufferPointer(start: bytes, count: count)))
        return 0
    }
}
if status != 0 { fatalError("libFuzzer ended with status \(status)") }
