internal import CLifelineMessages
internal import LifelineDescriptorTypes
internal import LifelineMessages

extension DescriptorBuilder {
    /// Finds the types that the declarations of the file refer to.
    mutating func link() throws(DescriptorError) {
        try linkImports()
        if let linkedFile {
            for index in firstMessage..<storage.messages.count {
                storage.messages[index].table = linkedFile.pointee.messages.unsafelyUnwrapped[index]
            }
        }
        for index in firstField..<storage.fields.count { try linkField(index) }
        for index in firstMessage..<storage.messages.count where storage.messages[index].proto.options.mapEntry {
            try checkMapEntry(index)
        }
        for service in storage.files[file].services {
            for method in storage.services[service].methods {
                let proto = storage.methods[method].proto
                let name = "\(storage.services[service].fullName).\(proto.name)"
                storage.methods[method].input = try findMessage(proto.inputType, usedBy: name)
                storage.methods[method].output = try findMessage(proto.outputType, usedBy: name)
            }
        }
    }

    private mutating func linkImports() throws(DescriptorError) {
        let proto = storage.files[file].proto
        visibleFiles = [FileKey(storage: storage, index: file)]
        visiblePackages = []
        makeVisible(package: proto.package)
        for (position, path) in proto.dependency.enumerated() {
            guard let place = findFile(path) else {
                if linkedFile == nil {
                    throw DescriptorError(
                        code: .missingImport,
                        message: "\(proto.name): there is no \(path.textFormatLiteral), which the file imports. "
                            + "Add all imported files, as protoc does with --include_imports."
                    )
                }
                storage.files[file].dependencies.append(nil)
                continue
            }
            storage.files[file].dependencies.append(place)
            try makeVisible(place, position)
        }
        guard proto.publicDependency.allSatisfy({ proto.dependency.indices.contains(Int($0)) }) else {
            throw DescriptorError(
                code: .malformed,
                message: "\(proto.name): a public import is none of the file's imports."
            )
        }
    }

    /// Makes an imported file visible, with its public imports.
    private mutating func makeVisible(_ place: DescriptorStorage.Place, _ position: Int) throws(DescriptorError) {
        var pending = [place]
        while let place = pending.popLast() {
            remainingWork -= 256
            if remainingWork < 0 {
                throw error(.limitExceeded, "imports", "there are too many public imports.")
            }
            let storage = place.storage ?? storage
            let key = FileKey(storage: storage, index: place.index)
            guard visibleFiles.insert(key).inserted else { continue }
            let file = storage.files[place.index]
            makeVisible(package: file.proto.package)
            for index in file.proto.publicDependency {
                guard file.dependencies.indices.contains(Int(index)), let next = file.dependencies[Int(index)] else {
                    continue
                }
                pending.append(DescriptorStorage.Place(storage: next.storage ?? place.storage, index: next.index))
            }
        }
    }

    private mutating func makeVisible(package: String) {
        var name = package[...]
        while !name.isEmpty, visiblePackages.insert(String(name)).inserted {
            remainingWork -= name.utf8.count
            name = name.lastIndex(of: ".").map { name[..<$0] } ?? ""
        }
    }

    private func findFile(_ path: String) -> DescriptorStorage.Place? {
        if let index = storage.filesByPath[path] { return DescriptorStorage.Place(storage: nil, index: index) }
        for storage in earlier.reversed() {
            if let index = storage.filesByPath[path] { return DescriptorStorage.Place(storage: storage, index: index) }
        }
        return nil
    }
}

// MARK: - Fields

extension DescriptorBuilder {
    private mutating func linkField(_ index: Int) throws(DescriptorError) {
        let (field, name) = (storage.fields[index], storage.fullName(ofField: index))
        switch field.scope {
        case .message(let message) where !field.isExtension:
            storage.fields[index].containingType = DescriptorStorage.Place(storage: nil, index: message)
        default:
            try linkExtension(index, named: name)
        }
        if !field.proto.hasType || field.type == .message || field.type == .enumeration {
            try linkType(of: index, named: name)
        } else if !field.proto.typeName.isEmpty {
            throw error(.invalidField, name, "a field of this type has no type_name.")
        }
        if field.isExtension, let place = storage.fields[index].containingType,
            (place.storage ?? storage).messages[place.index].proto.options.messageSetWireFormat,
            storage.fields[index].type != .message || field.isRepeated || field.isGroup(in: storage)
        {
            throw error(.invalidField, name, "only single messages can extend a message set.")
        }
        if field.proto.type == .group, storage.fields[index].isMap {
            throw error(.invalidField, name, "a map cannot be a group.")
        }
        if field.proto.options.packed, !(field.isRepeated && storage.fields[index].type.isPackable) {
            throw error(.invalidField, name, "only repeated numbers can be packed.")
        }
        try linkDefault(of: index, named: name)
    }

    private mutating func linkExtension(_ index: Int, named name: String) throws(DescriptorError) {
        let proto = storage.fields[index].proto
        guard let place = try findMessage(proto.extendee, usedBy: name) else { return }
        storage.fields[index].containingType = place
        let (owner, isLinked) = (place.storage ?? storage, linkedFile != nil)
        let message = owner.messages[place.index]
        guard isLinked || owner.hasExtensionRange(ofMessage: place.index, with: proto.number) else {
            throw error(
                .invalidNumber,
                name,
                "\(message.fullName) has no extensions with the number \(proto.number)."
            )
        }
        if storage.fields[index].features.presence == .required {
            throw error(.invalidField, name, "an extension cannot be required.")
        }
        let key = DescriptorStorage.ExtensionKey(message: message.fullName, number: proto.number)
        let isTaken = ([storage] + earlier).contains { $0.extensions[key] != nil }
        storage.extensions[key] = index
        if isTaken {
            throw error(.duplicateNumber, name, "another extension of \(message.fullName) has the same number.")
        }
    }

    private mutating func linkType(of index: Int, named name: String) throws(DescriptorError) {
        let field = storage.fields[index]
        if !field.proto.hasType, field.proto.typeName.isEmpty {
            throw error(.invalidField, name, "it has no type.")
        }
        switch try find(field.proto.typeName, usedBy: name) {
        case (.message(let message), let storageOfType)? where field.type == .message:
            storage.fields[index].typePlace = DescriptorStorage.Place(storage: storageOfType, index: message)
            let type = (storageOfType ?? storage).messages[message]
            if type.proto.options.mapEntry { try linkMap(index, to: message, in: storageOfType, named: name) }
        case (.enumeration(let enumeration), let storageOfType)?
        where field.type == .enumeration || !field.proto.hasType:
            storage.fields[index].type = .enumeration
            storage.fields[index].typePlace = DescriptorStorage.Place(storage: storageOfType, index: enumeration)
        case nil where linkedFile != nil:
            // A message's table has it in any case. An enum need not be linked.
            break
        default:
            throw error(
                .unknownType,
                name,
                "\(field.proto.typeName.textFormatLiteral) is no \(field.type == .message ? "message" : "enum")."
            )
        }
        if storage.fields[index].type == .enumeration, let place = storage.fields[index].typePlace,
            !field.isRepeated, !storage.fields[index].hasPresence,
            (place.storage ?? storage).enums[place.index].isClosed, !isInMapEntry(field)
        {
            throw error(.invalidField, name, "a field of a closed enum needs presence.")
        }
    }

    private func isInMapEntry(_ field: DescriptorStorage.Field) -> Bool {
        guard case .message(let message) = field.scope else { return false }
        return storage.messages[message].proto.options.mapEntry
    }

    /// The entry of a map is declared beside the field, and only that field may use it.
    private mutating func linkMap(
        _ index: Int,
        to entry: Int,
        in storageOfEntry: DescriptorStorage?,
        named name: String
    ) throws(DescriptorError) {
        let field = storage.fields[index]
        let camelCased = field.proto.name.camelCased
        let entryName = camelCased.prefix(1).uppercased() + camelCased.dropFirst() + "Entry"
        guard storageOfEntry == nil, field.isRepeated, !field.isExtension, case .message(let message) = field.scope,
            case .message(let outer) = storage.messages[entry].scope, outer == message,
            storage.messages[entry].proto.name == entryName
        else { throw error(.invalidField, name, "only a map can have the type of a map's entries, and each its own.") }
        storage.fields[index].isMap = true
    }

    private func checkMapEntry(_ index: Int) throws(DescriptorError) {
        let entry = storage.messages[index]
        let isEntry =
            entry.fields.count == 2 && entry.messages.isEmpty && entry.enums.isEmpty && entry.extensions.isEmpty
            && entry.oneofs.isEmpty && entry.proto.extensionRange.isEmpty
            && entry.fields.allSatisfy { storage.fields[$0].proto.label == .optional }
            && entry.fieldsByNumber.map { storage.fields[$0].proto.number } == [1, 2]
            && entry.fieldsByNumber.map { storage.fields[$0].proto.name } == ["key", "value"]
            && storage.fields[entry.fieldsByNumber[0]].type.isKey
        if isEntry, let value = storage.fields[entry.fieldsByNumber[1]].typePlace,
            storage.fields[entry.fieldsByNumber[1]].type == .enumeration
        {
            let owner = value.storage ?? storage
            guard owner.values[owner.enums[value.index].values.lowerBound].proto.number == 0 else {
                throw error(.invalidField, entry.fullName, "the enum of a map's values must begin with 0.")
            }
        }
        if !isEntry { throw error(.invalidField, entry.fullName, "the entries of a map cannot be like this.") }
    }

    private mutating func linkDefault(of index: Int, named name: String) throws(DescriptorError) {
        let field = storage.fields[index]
        guard field.proto.hasDefaultValue else { return }
        let hasDefault = field.type != .message && field.hasPresence
        let text = field.proto.defaultValue
        let value =
            switch field.typePlace {
            case let place? where hasDefault: try enumDefault(text, place, of: name)
            default: hasDefault ? FieldValue(default: text, of: field.type) : nil
            }
        guard let value else {
            if linkedFile != nil { return }
            throw error(.invalidDefault, name, "\(text.textFormatLiteral) is no default that the field can have.")
        }
        storage.fields[index].defaultValue = value
    }

    private mutating func enumDefault(
        _ value: String,
        _ place: DescriptorStorage.Place,
        of field: String
    ) throws(DescriptorError) -> FieldValue? {
        let storage = place.storage ?? storage
        let fullName = storage.prefix(of: storage.enums[place.index].scope) + value
        try countWork(fullName.utf8.count, for: field)
        guard case .value(let index)? = storage.symbols[fullName], storage.values[index].enumeration == place.index
        else { return nil }
        return .enumeration(storage.values[index].proto.number)
    }
}

// MARK: - Types

extension DescriptorBuilder {
    /// The message with this name, as seen from the declaration `user`; nil if it is not linked.
    private mutating func findMessage(
        _ name: String,
        usedBy user: String
    ) throws(DescriptorError) -> DescriptorStorage.Place? {
        switch try find(name, usedBy: user) {
        case (.message(let message), let storage)?: return DescriptorStorage.Place(storage: storage, index: message)
        case nil where linkedFile != nil: return nil
        default: throw error(.unknownType, user, "\(name.textFormatLiteral) is no message.")
        }
    }

    /// Finds the type with a name, as seen from the declaration `user`. The name is absolute, with a dot at the start,
    /// or is looked up in the enclosing scopes, starting with the innermost. As in protoc, the first scope that has the
    /// first part of the name decides.
    private mutating func find(
        _ name: String,
        usedBy user: String
    ) throws(DescriptorError) -> (DescriptorStorage.Symbol, DescriptorStorage?)? {
        var found: (DescriptorStorage.Symbol, DescriptorStorage?)?
        var hidden: (name: String, file: String)?
        if name.first == "." {
            found = visibleSymbol(named: String(name.dropFirst()), orHidden: &hidden)
        } else {
            let first = name.prefix { $0 != "." }
            let isSimple = first.endIndex == name.endIndex
            var scope = user[...]
            scopes: repeat {
                scope = scope.lastIndex(of: ".").map { scope[..<$0] } ?? ""
                try countWork(scope.utf8.count + name.utf8.count + 64, for: user)
                let prefix = scope.isEmpty ? "" : scope + "."
                switch visibleSymbol(named: prefix + first, orHidden: &hidden) {
                case (.message, _)?, (.enumeration, _)?: break
                case (.package, _)? where !isSimple, (.service, _)? where !isSimple: break
                default: continue
                }
                found = visibleSymbol(named: prefix + name, orHidden: &hidden)
                break scopes
            } while !scope.isEmpty
        }
        guard found == nil, let hidden else { return found }
        throw error(
            .unknownType,
            user,
            "\(hidden.name) is declared in \(hidden.file), which the file does not import."
        )
    }

    /// Counts the bytes of names to compare for the declaration `user`.
    private mutating func countWork(_ byteCount: Int, for user: String) throws(DescriptorError) {
        remainingWork -= byteCount
        if remainingWork < 0 {
            throw error(.limitExceeded, user, "too many names without a dot in front have to be looked up.")
        }
    }

    private func symbol(named name: String) -> (DescriptorStorage.Symbol, DescriptorStorage?)? {
        if let symbol = storage.symbols[name] { return (symbol, nil) }
        for storage in earlier.reversed() {
            if let symbol = storage.symbols[name] { return (symbol, storage) }
        }
        return nil
    }

    /// The symbol with a full name, if the file declares or imports it. The first one that it does not import is noted
    /// in `hidden`, for the error if no other is found.
    private func visibleSymbol(
        named name: String,
        orHidden hidden: inout (name: String, file: String)?
    ) -> (DescriptorStorage.Symbol, DescriptorStorage?)? {
        guard let (symbol, owner) = symbol(named: name) else { return nil }
        if linkedFile != nil { return (symbol, owner) }
        let storage = owner ?? storage
        let file: Int
        switch symbol {
        case .package: return visiblePackages.contains(name) ? (symbol, owner) : nil
        case .message(let index): file = storage.messages[index].file
        case .enumeration(let index): file = storage.enums[index].file
        case .service(let index): file = storage.services[index].file
        // None of these is a type or contains types.
        case .field, .oneof, .value, .method: return (symbol, owner)
        }
        if visibleFiles.contains(FileKey(storage: storage, index: file)) { return (symbol, owner) }
        hidden = hidden ?? (name, storage.files[file].proto.name)
        return nil
    }
}
