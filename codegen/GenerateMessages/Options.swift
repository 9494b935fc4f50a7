import Foundation

/// The command's arguments.
struct Options {
    static let usage = """
        USAGE: swift package --allow-writing-to-package-directory generate-messages [OPTIONS]

        Generates C and Swift for all .proto files below a folder of this package, into two of its targets. Services need
        the product Lifeline there.

        OPTIONS:
          --protos DIR               the folder with the .proto files (default: Protos)
          --swift-target NAME        the target that the Swift goes into (default: the only one that depends on a target
                                     whose name is its own with a C in front)
          --c-target NAME            the target that the C goes into (default: the Swift target's name with a C in front)
          --visibility LEVEL         public, package or internal (default: public)
          --services true|false|only whether services become Swift; only: and nothing else does, into a Swift target of their
                                     own, which --swift-target names (default: true)
          --compatibility LIBRARY    whose API the Swift has: Lifeline or SwiftProtobuf (default: Lifeline). SwiftProtobuf
                                     needs the product LifelineSwiftProtobufCompatibility
          --access-level-on-imports true|false
                                     whether imports have the level of --visibility (default: true for Lifeline, false
                                     for SwiftProtobuf)
          --protoc PATH              the protoc to run (default: the first on the search path). Files with an edition
                                     need protoc 27 or later, and those of edition 2024 protoc 32
          --import-path DIR          where imported .proto files are; may be repeated (those of protobuf itself, and
                                     lifeline/options.proto, are found)
          --module-mapping FILE_OR_FOLDER:SWIFT_MODULE:C_MODULE
                                     where imported files were generated; may be repeated

        Paths start at the package's folder. Files that an earlier run generated and this one does not are removed.
        """

    var protos = "Protos"
    var swiftTarget: String?
    var cTarget: String?
    var visibility = "Public"
    var services = "true"
    var compatibility = "Lifeline"
    var accessLevelOnImports: String?
    var protoc: String?
    var importPaths: [String] = []
    var moduleMappings: [String] = []

    /// Nil when help was asked for.
    init?(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            if option == "--help" || option == "-h" { return nil }
            guard let value = rest.popFirst() else {
                throw PluginError("\(option) needs a value, or is no option.\n\n\(Self.usage)")
            }
            switch option {
            case "--protos": protos = value
            case "--swift-target": swiftTarget = value
            case "--c-target": cTarget = value
            case "--visibility": visibility = value.prefix(1).uppercased() + value.dropFirst().lowercased()
            case "--services": services = value
            case "--compatibility": compatibility = value
            case "--access-level-on-imports": accessLevelOnImports = value
            case "--protoc": protoc = value
            case "--import-path": importPaths.append(value)
            case "--module-mapping": moduleMappings.append(value)
            default: throw PluginError("There is no option \(option).\n\n\(Self.usage)")
            }
        }
    }
}
