internal import CLifelineMessages
internal import LifelineDescriptorTypes
internal import LifelineMessages

/// Makes the tables of messages whose types are not linked. For linked types, `protoc-gen-lifeline` writes them.
/// lifeline_table.h describes their content.
struct TableBuilder {
    private let storage: DescriptorStorage
    private let memory = TableMemory()
    private var enums: [DescriptorStorage: [Int: UnsafePointer<LifelineEnum>]] = [:]

    init(storage: DescriptorStorage) {
        self.storage = storage
    }

    /// Makes the tables of all messages in the storage that have none, and of all extensions.
    mutating func build() {
        storage.tables = memory
        buildMessages()
        for index in storage.fields.indices where storage.fields[index].isExtension { buildExtension(index) }
    }

    private mutating func buildMessages() {
        let indices = storage.messages.indices.filter { storage.messages[$0].table == nil }
        if indices.isEmpty { return }
        let tables = memory.allocate(LifelineMessageTable.self, count: indices.count)
        for (position, index) in indices.enumerated() {
            storage.messages[index].table = UnsafePointer(tables + position)
        }
        let requiring = reaching(LIFELINE_MESSAGE_HAS_REQUIRED) { $0.isRequired }
        let unchecked = reaching(LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT) {
            $0.type == .string && !$0.features.validatesUTF8
        }
        for (position, index) in indices.enumerated() {
            let fields = storage.messages[index].fieldsByNumber.map { storage.fields[$0] }
            let names = fields.flatMap { [$0.proto.name, $0.jsonName] }
            fill(tables + position, with: storage.messages[index], fieldNames: names)
            var flags = 0
            if storage.messages[index].proto.options.mapEntry { flags |= LIFELINE_MESSAGE_MAP_ENTRY }
            if requiring.contains(index) { flags |= LIFELINE_MESSAGE_HAS_REQUIRED }
            if unchecked.contains(index) { flags |= LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT }
            let hasSharedName = Set(fields.map { Array($0.jsonName.utf8) }).count < fields.count
            if hasSharedName || fields.contains(where: \.jsonName.isEscapedInJSON) {
                flags |= LIFELINE_MESSAGE_NEEDS_NAME_SEARCH
            }
            if storage.messages[index].proto.options.messageSetWireFormat { flags |= LIFELINE_MESSAGE_SET }
            tables[position].flags = UInt32(flags)
        }
        for (position, index) in indices.enumerated() {
            tables[position].well_known = wellKnown(storage.messages[index]).rawValue
        }
    }

    /// The messages with a field that is looked for, or that can contain one. Looks at each once.
    private func reaching(_ flag: Int, _ isSought: (DescriptorStorage.Field) -> Bool) -> Set<Int> {
        var holders: [Int: [Int]] = [:]
        var pending: [Int] = []
        for (index, message) in storage.messages.enumerated() {
            var isFound = false
            for field in message.fields {
                let field = storage.fields[field]
                isFound = isFound || isSought(field)
                guard field.type == .message, let place = field.typePlace else { continue }
                if let other = place.storage {
                    let flags = Int(other.messages[place.index].table.unsafelyUnwrapped.pointee.flags)
                    isFound = isFound || flags & flag != 0
                } else {
                    holders[place.index, default: []].append(index)
                }
            }
            if isFound { pending.append(index) }
        }
        var found = Set(pending)
        while let index = pending.popLast() {
            for holder in holders[index, default: []] where found.insert(holder).inserted { pending.append(holder) }
        }
        return found
    }

    private mutating func buildExtension(_ index: Int) {
        let field = storage.fields[index]
        let needsType = field.type == .message || field.type == .enumeration
        guard let extended = field.containingType, field.typePlace != nil || !needsType else { return }
        // A larger number has no tag. protoc allows it in a message set.
        guard field.proto.number <= DescriptorBuilder.largestNumber else { return }
        var message = DescriptorStorage.Message(
            proto: Google_Protobuf_DescriptorProto(),
            fullName: storage.fullName(ofField: index),
            file: field.file,
            scope: field.scope,
            position: field.position,
            features: field.features
        )
        message.fieldsByNumber = [index]
        let table = memory.allocate(LifelineMessageTable.self, count: 1)
        fill(table, with: message, fieldNames: Array(repeating: "[\(message.fullName)]", count: 2))
        table.pointee.extended = (extended.storage ?? storage).messages[extended.index].table
        var flags = Int(table.pointee.fields.pointee.message?.pointee.flags ?? 0)
        flags &= LIFELINE_MESSAGE_HAS_REQUIRED | LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT
        if field.type == .string, !field.features.validatesUTF8 { flags |= LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT }
        table.pointee.flags = UInt32(flags)
        storage.fields[index].extensionTable = UnsafePointer(table)
    }

    private mutating func fill(
        _ table: UnsafeMutablePointer<LifelineMessageTable>,
        with message: DescriptorStorage.Message,
        fieldNames: [String]
    ) {
        let layout = StructLayout(of: message, in: storage)
        let numbered = message.fieldsByNumber
        let fields = memory.allocate(LifelineField.self, count: numbered.count)
        for (position, field) in numbered.enumerated() {
            fields[position] = makeField(storage.fields[field], layout.members[position])
        }
        table.pointee.full_name = memory.string(message.fullName)
        table.pointee.default_instance = UnsafeRawPointer(memory.allocate(UInt64.self, count: layout.size / 8))
        table.pointee.fields = UnsafePointer(fields)
        table.pointee.field_count = UInt32(numbered.count)
        table.pointee.dense_count = UInt32(zip(numbered.indices, 1...).prefix { fields[$0].number == $1 }.count)
        table.pointee.size = UInt32(layout.size)
        let groups = layout.groups(of: fields)
        if !groups.isEmpty { table.pointee.groups = memory.array(groups) }
        table.pointee.group_count = UInt32(groups.count)
        withUnsafeMutableBytes(of: &table.pointee.dispatch) { bytes in
            let entries = bytes.assumingMemoryBound(to: UInt64.self)
            // The first field with an index has it, even if it then needs no entry.
            var taken: Set<Int> = []
            for (position, field) in numbered.enumerated() {
                let entry = DispatchEntry(storage.fields[field], fields[position], at: position, in: storage)
                if let entry, taken.insert(entry.index).inserted { entries[entry.index] = entry.value }
            }
        }
        if !numbered.isEmpty { table.pointee.names = makeNames(fieldNames) }
    }

    private mutating func makeField(_ field: DescriptorStorage.Field, _ member: StructLayout.Member) -> LifelineField {
        let isGroup = field.isGroup(in: storage)
        var result = LifelineField()
        result.number = UInt32(field.proto.number)
        result.type = UInt8(field.type.rawValue)
        result.presence = UInt8(member.presence)
        result.form =
            field.isRepeated
            ? 0 : lifeline_form(UInt32(member.presence), UInt32(isGroup ? LIFELINE_TYPE_GROUP : field.type.rawValue))
        result.offset = UInt32(member.offset)
        result.quantifier_offset = UInt32(member.quantifierOffset)
        let tag = field.tagBytes(in: storage)
        // The tag's bytes are the last of eight in memory, and the first is their number.
        result.encoded_tag = tag.reversed().reduce(0) { $0 << 8 | UInt64($1) } << (64 - 8 * UInt64(tag.count))
        result.encoded_tag |= UInt64(tag.count)
        var flags = 0
        if field.isPacked { flags |= LIFELINE_FIELD_PACKED }
        if field.isRequired { flags |= LIFELINE_FIELD_REQUIRED }
        if field.type == .string, field.features.validatesUTF8 { flags |= LIFELINE_FIELD_VALIDATE_UTF8 }
        if field.hasClosedEnum(in: storage) { flags |= LIFELINE_FIELD_CLOSED_ENUM }
        if isGroup { flags |= LIFELINE_FIELD_GROUP }
        if isGroup, field.isNamedByType(in: storage) { flags |= LIFELINE_FIELD_NAMED_BY_TYPE }
        result.flags = UInt8(flags)
        if let place = field.typePlace {
            let owner = place.storage ?? storage
            if field.type == .message {
                result.message = owner.messages[place.index].table
            } else {
                result.enumeration = makeEnum(place.index, in: owner)
            }
        }
        return result
    }

    private mutating func makeEnum(_ index: Int, in owner: DescriptorStorage) -> UnsafePointer<LifelineEnum> {
        if let made = enums[owner]?[index] { return made }
        let enumeration = owner.enums[index]
        let values = enumeration.values.map { owner.values[$0].proto }
        var numbers: Set<Int32> = []
        let isFirst = values.map { numbers.insert($0.number).inserted }
        let first = zip(values, isFirst).filter(\.1).map(\.0).sorted { $0.number < $1.number }
        let aliases = zip(values, isFirst).filter { !$0.1 }.map(\.0)
        let result = memory.allocate(LifelineEnum.self, count: 1)
        result.pointee.full_name = memory.string(enumeration.fullName)
        result.pointee.numbers = memory.array(first.map(\.number))
        result.pointee.names = makeNames((first + aliases).map(\.name))
        if !aliases.isEmpty { result.pointee.alias_numbers = memory.array(aliases.map(\.number)) }
        result.pointee.count = UInt32(first.count)
        let isNull = enumeration.fullName == "google.protobuf.NullValue"
        result.pointee.flags = isNull ? UInt32(LIFELINE_ENUM_NULL_VALUE) : 0
        enums[owner, default: [:]][index] = UnsafePointer(result)
        return UnsafePointer(result)
    }

    private func makeNames(_ names: [String]) -> LifelineNames {
        // By their bytes: strings with different bytes may be equal.
        let names = names.map { Array($0.utf8) }
        var offsets: [[UInt8]: Int] = [:]
        var text: [UInt8] = []
        var order: [UInt32] = []
        var entries: [LifelineName] = []
        // The names at even indices, and those at odd ones.
        var seen: [Set<[UInt8]>] = [[], []]
        for (index, name) in names.enumerated() {
            let offset = offsets[name] ?? text.count
            if offset == text.count {
                offsets[name] = offset
                text += name
                text.append(0)
            }
            let isFirst = seen[index % 2].insert(name).inserted
            let isSecondOfTwo = index % 2 == 1 && names[index - 1] == name
            if isFirst && !isSecondOfTwo { order.append(UInt32(index)) }
            entries.append(LifelineName(offset: UInt32(offset), count: UInt32(name.count)))
        }
        order.sort {
            let (left, right) = (names[Int($0)], names[Int($1)])
            if left.count != right.count { return left.count < right.count }
            return left == right ? $0 % 2 < $1 % 2 : left.lexicographicallyPrecedes(right)
        }
        return LifelineNames(
            text: UnsafeRawPointer(memory.array(text)).assumingMemoryBound(to: CChar.self),
            names: memory.array(entries),
            order: memory.array(order),
            order_count: UInt32(order.count)
        )
    }
}

/// The memory of tables.
final class TableMemory: @unchecked Sendable {
    // @unchecked Sendable, because only `TableBuilder` changes it, before it is shared.
    private var allocations: [UnsafeMutableRawPointer] = []

    /// Memory that holds zeros.
    func allocate<Element>(_: Element.Type, count: Int) -> UnsafeMutablePointer<Element> {
        let byteCount = max(1, count) * MemoryLayout<Element>.stride
        let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
        allocations.append(memory)
        return memory.bindMemory(to: Element.self, capacity: max(1, count))
    }

    func array<Element: BitwiseCopyable>(_ elements: [Element]) -> UnsafePointer<Element> {
        let memory = allocate(Element.self, count: elements.count)
        memory.update(from: elements, count: elements.count)
        return UnsafePointer(memory)
    }

    func string(_ text: String) -> UnsafePointer<CChar> {
        UnsafeRawPointer(array(Array(text.utf8) + [0])).assumingMemoryBound(to: CChar.self)
    }

    deinit {
        for memory in allocations { memory.deallocate() }
    }
}
