internal import Dispatch
internal import Glibc
internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection
internal import Synchronization

/// How received messages are printed.
enum PrintedForm {
    case text(MessageTextEncoder)
    /// As they came; with a type, after a look whether they are of it.
    case delimited(TypedDecoder?)

    /// - Parameters:
    ///   - format: nil for JSON if the type is known, else for text with the numbers of fields.
    ///   - limit: the most bytes of an encoded message.
    init(
        _ format: MessageFormat?,
        of type: (type: MessageDescriptor, pool: DescriptorPool)?,
        json: JSONFlags,
        limit: Int
    ) {
        guard let (type, pool) = type else {
            self = format == .delimited ? .delimited(nil) : .text(.fieldNumbers(limit: limit))
            return
        }
        let types = MessageRegistry(pool)
        switch format ?? .json {
        case .json: self = .text(.json(type, json.options(types), limit: limit))
        case .text: self = .text(.text(type, TextFormatEncodingOptions(types: types), limit: limit))
        case .delimited: self = .delimited(TypedDecoder(type, limit: limit))
        }
    }

    /// Appends what is printed of a message.
    func append(_ payload: UnsafeRawBufferPointer, to output: inout [UInt8]) throws(MessageError) {
        switch self {
        case .text(let encoder):
            try encoder.append(payload, to: &output)
        case .delimited(let decoder):
            _ = try decoder?.message(payload)
            output += Varint.encoded(UInt64(payload.count))
            output += payload
        }
    }
}

/// Where received messages are printed: a file, or standard output.
final class MessageOutput: Sendable {
    private let descriptor: Int32
    private let name: String
    private let queue = DispatchQueue(label: "lifeline.message-output")
    /// Whether the file still has what was in it before. A command that fails before it has a message leaves that alone.
    private let isOld: Mutex<Bool>

    /// - Parameter path: the file, which is made if there is none; nil for standard output.
    /// - Throws: `CommandFailure` when the file cannot be opened.
    init(path: String?) throws(CommandFailure) {
        name = path ?? "standard output"
        isOld = Mutex(path != nil)
        guard let path else {
            descriptor = STDOUT_FILENO
            return
        }
        descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        if descriptor < 0 {
            throw CommandFailure(status: .inputOutput, message: "Cannot open \(path): \(lastErrorText()).")
        }
    }

    deinit { if descriptor != STDOUT_FILENO { close(descriptor) } }

    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Empties the file, if nothing was written to it yet.
    func begin() {
        let begins = isOld.withLock { isOld in
            defer { isOld = false }
            return isOld
        }
        // A pipe or a device has nothing to be emptied, and says so.
        if begins { ftruncate(descriptor, 0) }
    }

    /// Writes all of `bytes`, and waits until they are taken. What is written keeps the order of the calls of an actor.
    ///
    /// - Throws: `CommandFailure`; `CancellationError` when the task is cancelled first.
    nonisolated(nonsending) func write(_ bytes: [UInt8]) async throws {
        let (descriptor, name) = (descriptor, name)
        begin()
        try await blocking(on: queue) {
            do throws(SystemError) {
                try writeBlocking(bytes, to: descriptor)
            } catch {
                let reason = String(cString: strerror(error.number))
                throw CommandFailure(status: .inputOutput, message: "Cannot write to \(name): \(reason).")
            }
        }
    }
}
