internal import SwiftProtobufPluginLibrary

/// Refuses services whose Swift would not compile because of other files, and options that a method cannot have.
struct ServiceCheck {
    let schema: Schema
    let options: GeneratorOptions

    func check(_ files: [FileDescriptor]) throws {
        if options.services == .only {
            if files.allSatisfy(\.services.isEmpty) {
                throw GeneratorError(
                    "--lifeline_opt: Services is only, and there are no services in "
                        + "\(files.map(\.name).joined(separator: ", ")). Leave Services away."
                )
            }
            for file in files { try checkModules(of: file) }
        }
        for file in files { try checkOptions(of: file) }
        try checkNames(of: files)
    }

    /// Services that are generated without their messages import the module that has the messages.
    private func checkModules(of file: FileDescriptor) throws {
        let names = ServiceNames(file: file, swiftNames: schema.swiftNames)
        for message in file.services.flatMap(names.methods).flatMap(\.usedMessages) {
            let path = message.file.name
            if options.mappedModule(ofFile: path) != nil { continue }
            throw GeneratorError(
                "\(file.name): Services is only, and nothing says which module has \(message.fullName) of \(path). Add "
                    + "--lifeline_opt=ModuleMapping=\(path):SWIFT_MODULE:C_MODULE."
            )
        }
    }

    /// A synchronous handler can neither read a stream nor send one, and pushes to the client have no handler.
    private func checkOptions(of file: FileDescriptor) throws {
        let names = ServiceNames(file: file, swiftNames: schema.swiftNames)
        for method in file.services.flatMap(names.methods) where method.isSynchronous {
            let kind: String
            switch method.shape {
            case .unary, .clientPush: continue
            case .stream: kind = "a call that is answered by a stream"
            case .clientStream: kind = "a call with a stream of requests"
            case .bothWays: kind = "a call with streams in both directions"
            case .serverPush: kind = "a push to the client"
            }
            let place = GeneratorError.place(method.descriptor.sourceCodeInfoLocation, in: file.name)
            throw GeneratorError(
                "\(place): method \(method.path) has the option (lifeline.synchronous), and is \(kind). Only calls "
                    + "without streams and pushes to the server can have it. Remove the option."
            )
        }
    }

    /// Within a file, a name is changed when another has it. But the names in other files are not known.
    private func checkNames(of files: [FileDescriptor]) throws {
        var owners: [String: (what: String, file: FileDescriptor)] = [:]
        if options.services == .withMessages {
            for file in files {
                for message in file.messages {
                    owners[schema.swiftNames.relativeName(message)] = ("message \(message.name)", file)
                }
                for type in file.enums { owners[schema.swiftNames.relativeName(type)] = ("enum \(type.name)", file) }
            }
        }
        for file in files {
            let names = ServiceNames(file: file, swiftNames: schema.swiftNames)
            for service in file.services {
                for name in names.types(service).all {
                    let other = owners.updateValue(("service \(service.name)", file), forKey: name)
                    guard let other else { continue }
                    throw GeneratorError(
                        "\(file.name): service \(service.name) becomes \(name) in Swift, and so does \(other.what) of "
                            + "\(other.file.name). Rename one of them, or generate the files into different targets."
                    )
                }
            }
        }
    }
}
