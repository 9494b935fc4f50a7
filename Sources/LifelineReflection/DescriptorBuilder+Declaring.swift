internal import CLifelineMessages
internal import LifelineDescriptorTypes
internal import LifelineMessages

extension DescriptorBuilder {
    /// The largest number of a field: its tag has 32 bits, and three of them are the wire type.
    static let largestNumber: Int32 = 536_870_911

    /// Adds all declarations of a file, and checks them as far as that is possible without the types they refer to.
    mutating func declare(_ proto: Google_Protobuf_FileDescriptorProto) throws(DescriptorError) {
        let edition: Google_Protobuf_Edition =
            switch proto.syntax {
            case "", "proto2": .proto2
            case "proto3": .proto3
            case "editions": proto.edition
            default: .unknown
            }
        guard let features = Features(edition)?.overridden(by: proto.options.features) else {
            throw DescriptorError(
                code: .unsupportedEdition,
                message: "\(proto.name): the syntax is \(proto.syntax.textFormatLiteral), edition \(edition.rawValue). "
                    + "proto2, proto3 and the editions 2023 and 2024 are known."
            )
        }
        file = storage.files.count
        (firstMessage, firstField) = (storage.messages.count, storage.fields.count)
        storage.files.append(DescriptorStorage.File(proto: proto, edition: edition, features: features))
        storage.filesByPath[proto.name] = file
        if !proto.package.isEmpty { try addPackage(proto.package) }
        for location in proto.sourceCodeInfo.location {
            storage.files[file].locations[Array(location.path)] = location
        }
        let scope = DescriptorStorage.Scope.file(file)
        for (position, message) in proto.messageType.enumerated() {
            storage.files[file].messages.append(storage.messages.count)
            try declare(message, in: scope, at: position, features, depth: 1)
        }
        for (position, enumeration) in proto.enumType.enumerated() {
            storage.files[file].enums.append(storage.enums.count)
            try declare(enumeration, in: scope, at: position, features)
        }
        storage.files[file].extensions = try declare(proto.extension, in: scope, features, isExtension: true)
        let firstService = storage.services.count
        for (position, service) in proto.service.enumerated() { try declare(service, at: position) }
        storage.files[file].services = firstService..<storage.services.count
    }

    private mutating func declare(
        _ proto: Google_Protobuf_DescriptorProto,
        in scope: DescriptorStorage.Scope,
        at position: Int,
        _ outerFeatures: Features,
        depth: Int
    ) throws(DescriptorError) {
        try countType()
        let (fullName, index) = (storage.prefix(of: scope) + proto.name, storage.messages.count)
        if depth > limits.depth {
            throw error(.limitExceeded, fullName, "it is declared inside more than \(limits.depth) other messages.")
        }
        try checkIdentifier(proto.name, of: fullName)
        try add(.message(index), named: fullName)
        let features = outerFeatures.overridden(by: proto.options.features)
        storage.messages.append(
            DescriptorStorage.Message(
                proto: proto,
                fullName: fullName,
                file: file,
                scope: scope,
                position: position,
                features: features
            )
        )
        let inner = DescriptorStorage.Scope.message(index)
        try declareOneofs(of: proto, in: index)
        storage.messages[index].fields = try declare(proto.field, in: inner, features, isExtension: false)
        storage.messages[index].extensions = try declare(proto.extension, in: inner, features, isExtension: true)
        try checkOneofs(of: index)
        try checkNumbers(of: index)
        // Generated code was accepted by protoc, and older versions accept more.
        if linkedFile == nil { try checkJSONNames(of: index) }
        for (position, enumeration) in proto.enumType.enumerated() {
            storage.messages[index].enums.append(storage.enums.count)
            try declare(enumeration, in: inner, at: position, features)
        }
        for (position, nested) in proto.nestedType.enumerated() {
            storage.messages[index].messages.append(storage.messages.count)
            try declare(nested, in: inner, at: position, features, depth: depth + 1)
        }
    }

    private mutating func declareOneofs(
        of proto: Google_Protobuf_DescriptorProto,
        in message: Int
    ) throws(DescriptorError) {
        let first = storage.oneofs.count
        for (position, oneof) in proto.oneofDecl.enumerated() {
            try countType()
            let fullName = storage.prefix(of: .message(message)) + oneof.name
            try checkIdentifier(oneof.name, of: fullName)
            try add(.oneof(storage.oneofs.count), named: fullName)
            storage.oneofs.append(DescriptorStorage.Oneof(proto: oneof, message: message, position: position))
        }
        storage.messages[message].oneofs = first..<storage.oneofs.count
    }

    private mutating func declare(
        _ protos: RepeatedField<Google_Protobuf_FieldDescriptorProto>,
        in scope: DescriptorStorage.Scope,
        _ outerFeatures: Features,
        isExtension: Bool
    ) throws(DescriptorError) -> Range<Int> {
        try countMembers(protos.count)
        let first = storage.fields.count
        for (position, proto) in protos.enumerated() {
            let (fullName, index) = (storage.prefix(of: scope) + proto.name, storage.fields.count)
            try checkIdentifier(proto.name, of: fullName)
            try add(.field(index), named: fullName)
            // An extension has a table of its own.
            if isExtension { try countType() }
            // Extensions of a message set may have larger numbers. `linkExtension` checks them against its ranges.
            let largest = isExtension ? Int32.max - 1 : Self.largestNumber
            guard (1...largest).contains(proto.number), !(19_000...19_999).contains(proto.number) else {
                throw error(
                    .invalidNumber,
                    fullName,
                    "no field can have the number \(proto.number). Numbers are 1 to 536870911, but not 19000 to 19999."
                )
            }
            var (features, oneof) = (outerFeatures, Int?.none)
            if proto.hasOneofIndex {
                guard !isExtension, case .message(let message) = scope, proto.label == .optional,
                    storage.messages[message].oneofs.indices.contains(
                        storage.messages[message].oneofs.lowerBound + Int(proto.oneofIndex)
                    )
                else { throw error(.invalidField, fullName, "it cannot be in oneof \(proto.oneofIndex).") }
                let place = storage.messages[message].oneofs.lowerBound + Int(proto.oneofIndex)
                storage.oneofs[place].fields.append(index)
                features = features.overridden(by: storage.oneofs[place].proto.options.features)
                oneof = place
            }
            features = features.overridden(by: proto.options.features).overridden(by: proto)
            storage.fields.append(
                DescriptorStorage.Field(
                    proto: proto,
                    file: file,
                    scope: scope,
                    position: position,
                    isExtension: isExtension,
                    features: features,
                    jsonName: proto.hasJsonName ? proto.jsonName : proto.name.camelCased,
                    // Without a type, it is a message or an enum. Linking finds out which.
                    type: proto.hasType ? FieldType(rawValue: proto.type.rawValue) ?? .message : .message,
                    oneof: oneof,
                    isRepeated: proto.label == .repeated
                )
            )
        }
        return first..<storage.fields.count
    }

    private mutating func checkOneofs(of message: Int) throws(DescriptorError) {
        for index in storage.messages[message].oneofs {
            let oneof = storage.oneofs[index]
            let name = storage.prefix(of: .message(message)) + oneof.proto.name
            if oneof.fields.isEmpty { throw error(.invalidField, name, "a oneof needs fields.") }
            let optionalCount = oneof.fields.count { storage.fields[$0].proto.proto3Optional }
            if optionalCount == 0 { continue }
            if oneof.fields.count > 1 {
                throw error(.invalidField, name, "the oneof of an optional field can have no other fields.")
            }
            storage.oneofs[index].isSynthetic = true
        }
        for index in storage.messages[message].fields
        where storage.fields[index].proto.proto3Optional && storage.fields[index].oneof == nil {
            throw error(.invalidField, storage.fullName(ofField: index), "an optional field of proto3 needs a oneof.")
        }
    }

    /// Checks that no name in JSON is in brackets, and that fields of a message have different ones, unless its JSON is
    /// best effort. protoc 3.21 accepts both if `json_name` makes such a name; newer versions do not. All versions also
    /// compare the names that fields would have without `json_name`, which a pool does not.
    private func checkJSONNames(of index: Int) throws(DescriptorError) {
        let message = storage.messages[index]
        // By their bytes: strings with different bytes may be equal.
        var fields: [[UInt8]: Int] = [:]
        for field in message.fields {
            let name = storage.fields[field].jsonName
            if name.hasPrefix("["), name.hasSuffix("]") {
                throw error(
                    .invalidName,
                    storage.fullName(ofField: field),
                    "the json_name \(name.textFormatLiteral) is in brackets, as only extensions are."
                )
            }
            let other = fields.updateValue(field, forKey: Array(name.utf8))
            guard let other, message.features.hasJSON, !message.proto.options.deprecatedLegacyJsonFieldConflicts else {
                continue
            }
            throw error(
                .duplicateName,
                storage.fullName(ofField: field),
                "the field \(storage.fields[other].proto.name) has the name \(name.textFormatLiteral) in JSON, too."
            )
        }
    }

    /// Checks that no number of a message is used twice.
    private mutating func checkNumbers(of index: Int) throws(DescriptorError) {
        let message = storage.messages[index]
        let fields = message.fields.sorted { storage.fields[$0].proto.number < storage.fields[$1].proto.number }
        for (first, second) in zip(fields, fields.dropFirst())
        where storage.fields[first].proto.number == storage.fields[second].proto.number {
            throw error(
                .duplicateNumber,
                storage.fullName(ofField: second),
                "the field \(storage.fields[first].proto.name) has the number \(storage.fields[first].proto.number), too."
            )
        }
        storage.messages[index].fieldsByNumber = fields
        for (position, field) in fields.enumerated() { storage.fields[field].tableIndex = position }

        try countMembers(message.proto.reservedRange.count + message.proto.extensionRange.count)
        let isMessageSet = message.proto.options.messageSetWireFormat
        if isMessageSet, !fields.isEmpty {
            throw error(.invalidField, message.fullName, "a message set has no fields, only extensions.")
        }
        let largest = isMessageSet ? Int32.max : Self.largestNumber + 1
        var ranges: [ClosedRange<Int32>] = []
        for (start, end) in message.proto.reservedRange.map({ ($0.start, $0.end) })
            + message.proto.extensionRange.map({ ($0.start, $0.end) })
        {
            guard start >= 1, start < end, end <= largest else {
                throw error(.invalidNumber, message.fullName, "there can be no range from \(start) to \(end).")
            }
            ranges.append(start...end - 1)
        }
        try checkOverlaps(of: &ranges, with: fields.map { storage.fields[$0].proto.number }, in: message.fullName)
        storage.messages[index].extensionRanges = message.proto.extensionRange.map { $0.start...$0.end - 1 }
            .sorted { $0.lowerBound < $1.lowerBound }
        // Extensions are also in the message's scope, but may have these names.
        let fieldNames = fields.map { storage.fields[$0].proto.name }
        try check(fieldNames, against: message.proto.reservedName, prefix: message.fullName + ".")
    }

    /// Checks that no name is reserved.
    private func check(
        _ names: [String],
        against reservedNames: RepeatedField<String>,
        prefix: String
    ) throws(DescriptorError) {
        if reservedNames.isEmpty { return }
        let reserved = Set(reservedNames)
        if let name = names.first(where: reserved.contains) {
            throw error(.duplicateName, prefix + name, "the name is reserved.")
        }
    }

    /// - Parameter numbers: ascending.
    private func checkOverlaps(
        of ranges: inout [ClosedRange<Int32>],
        with numbers: [Int32],
        in name: String
    ) throws(DescriptorError) {
        ranges.sort { $0.lowerBound < $1.lowerBound }
        for (first, second) in zip(ranges, ranges.dropFirst()) where first.upperBound >= second.lowerBound {
            throw error(.overlappingRanges, name, "the number \(second.lowerBound) is in two ranges.")
        }
        var remaining = ranges[...]
        for number in numbers {
            remaining = remaining.drop { $0.upperBound < number }
            guard let range = remaining.first else { return }
            if range.contains(number) {
                throw error(.overlappingRanges, name, "the number \(number) is used, but also in a range.")
            }
        }
    }

    private mutating func declare(
        _ proto: Google_Protobuf_EnumDescriptorProto,
        in scope: DescriptorStorage.Scope,
        at position: Int,
        _ outerFeatures: Features
    ) throws(DescriptorError) {
        try countType()
        try countMembers(proto.value.count + proto.reservedRange.count)
        let (prefix, index, first) = (storage.prefix(of: scope), storage.enums.count, storage.values.count)
        let fullName = prefix + proto.name
        try checkIdentifier(proto.name, of: fullName)
        try add(.enumeration(index), named: fullName)
        let isClosed = outerFeatures.overridden(by: proto.options.features).isEnumClosed
        guard let firstValue = proto.value.first else { throw error(.invalidEnum, fullName, "an enum needs values.") }
        if !isClosed, firstValue.number != 0 {
            throw error(.invalidEnum, fullName, "the first value of an open enum must be 0.")
        }
        for (position, value) in proto.value.enumerated() {
            // The values of an enum are in the scope of the enum itself.
            try checkIdentifier(value.name, of: prefix + value.name)
            try add(.value(storage.values.count), named: prefix + value.name)
            storage.values.append(
                DescriptorStorage.EnumValue(proto: value, enumeration: index, position: position)
            )
        }
        storage.enums.append(
            DescriptorStorage.Enum(
                proto: proto,
                fullName: fullName,
                file: file,
                scope: scope,
                position: position,
                isClosed: isClosed,
                values: first..<storage.values.count
            )
        )
        let numbers = proto.value.map(\.number).sorted()
        for (number, next) in zip(numbers, numbers.dropFirst()) where number == next && !proto.options.allowAlias {
            throw error(.duplicateNumber, fullName, "two values have the number \(number), without allow_alias.")
        }
        var ranges: [ClosedRange<Int32>] = []
        for range in proto.reservedRange {
            // These ranges include their end.
            guard range.start <= range.end else {
                throw error(.invalidNumber, fullName, "there can be no range from \(range.start) to \(range.end).")
            }
            ranges.append(range.start...range.end)
        }
        try checkOverlaps(of: &ranges, with: numbers, in: fullName)
        try check(proto.value.map(\.name), against: proto.reservedName, prefix: prefix)
    }

    private mutating func declare(
        _ proto: Google_Protobuf_ServiceDescriptorProto,
        at position: Int
    ) throws(DescriptorError) {
        try countType()
        try countMembers(proto.method.count)
        let (fullName, index) = (storage.prefix(of: .file(file)) + proto.name, storage.services.count)
        try checkIdentifier(proto.name, of: fullName)
        try add(.service(index), named: fullName)
        let first = storage.methods.count
        for (position, method) in proto.method.enumerated() {
            try checkIdentifier(method.name, of: "\(fullName).\(method.name)")
            try add(.method(storage.methods.count), named: "\(fullName).\(method.name)")
            storage.methods.append(DescriptorStorage.Method(proto: method, service: index, position: position))
        }
        storage.services.append(
            DescriptorStorage.Service(
                proto: proto,
                fullName: fullName,
                file: file,
                position: position,
                methods: first..<storage.methods.count
            )
        )
    }
}

extension String {
    /// A field's name in JSON, as protoc makes it: without underscores, and with a capital letter after each. Code
    /// generation leaves out the names that follow this rule: `removeImpliedName` in its FileDescription.
    package var camelCased: String {
        var name = ""
        var isCapital = false
        for character in unicodeScalars {
            if character == "_" {
                isCapital = true
            } else {
                name += isCapital && character.isASCII ? String(character).uppercased() : String(character)
                isCapital = false
            }
        }
        return name
    }
}
