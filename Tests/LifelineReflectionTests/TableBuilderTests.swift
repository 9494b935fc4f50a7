import CLifelineMessages
import LifelineMessages
import LifelineTestSupport
import TestProtos
import Testing

@testable import LifelineReflection

/// Tables made at run time equal those that the generator writes.
@Suite struct TableBuilderTests {
    @Test func tablesAreThoseOfTheGenerator() throws {
        let pool = try DescriptorPool(Schemas.set())
        #expect(Schemas.messages.count > 150)
        for linked in Schemas.messages {
            let message = try #require(pool.message(named: linked.fullName))
            #expect(linked.table.pointee.file != nil && message.table.pointee.file == nil)
            let (made, generated) = (Table(message.table), Table(linked.table))
            #expect(made == generated, "\(linked.fullName)")
        }
    }

    private static let extensions: [any MessageExtension.Type] = [
        Test_Extending_Extensions_Pair.self, Test_Extending_Extensions_Spot.self,
        Test_Extending_Extensions_a_bool.self, Test_Extending_Extensions_a_double.self,
        Test_Extending_Extensions_a_fixed32.self, Test_Extending_Extensions_a_fixed64.self,
        Test_Extending_Extensions_a_float.self, Test_Extending_Extensions_a_sint32.self,
        Test_Extending_Extensions_a_sint64.self, Test_Extending_Extensions_a_string.self,
        Test_Extending_Extensions_a_uint32.self, Test_Extending_Extensions_a_uint64.self,
        Test_Extending_Extensions_an_int32.self, Test_Extending_Extensions_an_int64.self,
        Test_Extending_Extensions_an_sfixed32.self, Test_Extending_Extensions_an_sfixed64.self,
        Test_Extending_Extensions_color.self, Test_Extending_Extensions_heavy.self,
        Test_Extending_Extensions_name.self, Test_Extending_Extensions_numbers.self,
        Test_Extending_Extensions_packed_numbers.self, Test_Extending_Extensions_singular.self,
        Test_Extending_Extensions_size.self, Test_Extending_Extensions_sizes.self,
        Test_Extending_Extensions_some_bytes.self, Test_Extending_Extensions_texts.self,
        Test_Extending_Extensions_unit.self, Test_Extending_Extensions_weight.self,
        Test_Extending_Extensions_weights.self, Test_Extending_Entry.Extensions.entry.self,
        Test_Extending_Scope.Extensions.scope.self, Test_Extending_Scope.Extensions.self_.self,
        Test_Imports_Extensions_owner.self, Test_Imports_Extensions_rank.self,
        Test_Imports_Options_Extensions_codes.self, Test_Imports_Options_Extensions_level.self,
        Test_Imports_Options_Extensions_mark.self, Test_Imports_Options_Extensions_note.self,
        Test_Imports_Options_Extensions_rate.self, Test_Proto2_Extensions_count.self,
        Test_Proto2_Extensions_marker.self, Test_Proto2_Extensions_note.self, Test_Proto2_Extensions_words.self,
        Test_Proto2_Extendable.Scope.Extensions.scoped.self,
    ]

    @Test func tablesOfExtensionsAreThoseOfTheGenerator() throws {
        let pool = try DescriptorPool(Schemas.set())
        let names = Set(Self.extensions.map { $0.protoMessageName })
        for type in Self.extensions {
            let made = try #require(pool.extension(named: type.protoMessageName)?.extensionTable)
            #expect(Table(made) == Table(type._table), "\(type)")
            #expect(made.pointee.extended == pool.extension(named: type.protoMessageName)?.containingType?.table)
        }
        #expect(names == Set(pool.extensions.map(\.fullName)))
    }

    /// The content of a table, for comparing.
    private struct Table: Equatable {
        struct Field: Equatable {
            var numbers: [UInt64]
            var message: String?
            var enumeration: [String]?
        }
        var name: String
        var fields: [Field]
        var groups: [[UInt32]]
        var numbers: [UInt32]
        var dispatch: [UInt64]
        var names: [String]
        var wellKnown: UInt32

        init(_ pointer: UnsafePointer<_MessageTable>) {
            let table = pointer.pointee
            name = String(cString: table.full_name)
            fields = pointer.fields.map { field in
                Field(
                    numbers: [
                        UInt64(field.number), UInt64(field.type), UInt64(field.presence), UInt64(field.flags),
                        UInt64(field.form), UInt64(field.offset), UInt64(field.quantifier_offset), field.encoded_tag,
                    ],
                    message: field.message.map { String(cString: $0.pointee.full_name) },
                    enumeration: field.enumeration.map { Self.values($0.pointee) }
                )
            }
            groups = UnsafeBufferPointer(start: table.groups, count: Int(table.group_count)).map {
                [$0.first_field, $0.offset, $0.size]
            }
            numbers = [table.field_count, table.dense_count, table.size, table.flags]
            dispatch = withUnsafeBytes(of: table.dispatch) { Array($0.assumingMemoryBound(to: UInt64.self)) }
            names = Self.names(table.names, count: 2 * Int(table.field_count))
            wellKnown = table.well_known
        }

        private static func values(_ table: LifelineEnum) -> [String] {
            let numbers = UnsafeBufferPointer(start: table.numbers, count: Int(table.count)).map { "\($0)" }
            let aliasCount = Int(table.names.order_count) - Int(table.count)
            let aliases = UnsafeBufferPointer(start: table.alias_numbers, count: aliasCount).map { "\($0)" }
            return [String(cString: table.full_name), "\(table.flags)"] + numbers + aliases
                + names(table.names, count: Int(table.names.order_count))
        }

        private static func names(_ names: LifelineNames, count: Int) -> [String] {
            let texts = UnsafeBufferPointer(start: names.names, count: count).map { name in
                let bytes = UnsafeRawBufferPointer(start: names.text + Int(name.offset), count: Int(name.count))
                return String(decoding: bytes, as: UTF8.self)
            }
            return texts + UnsafeBufferPointer(start: names.order, count: Int(names.order_count)).map { "\($0)" }
        }
    }

    /// Messages of both kinds of tables have the same bytes, JSON and text.
    @Test(arguments: 0..<20) func messagesAreThoseOfTheGenerator(seed: UInt64) throws {
        let pool = try DescriptorPool(Schemas.set())
        var random = SeededGenerator(seed: seed)
        for linked in Schemas.messages where !linked.isMapEntry {
            let type = try #require(pool.message(named: linked.fullName))
            let generated = try Schemas.random(linked, using: &random)
            let bytes = try generated.serializedBytes(partial: true)
            let made = try DynamicMessage(type, serializedBytes: bytes, partial: true)
            #expect(try made.serializedBytes(partial: true) == bytes, "\(linked.fullName)")
            #expect(made.textFormatString() == generated.textFormatString())
            #expect(made.isInitialized == generated.isInitialized)
            let again = try DynamicMessage(type, textFormatString: made.textFormatString(), partial: true)
            #expect(again == made)
            // Times out of their range have no form in JSON.
            guard let json = try? generated.jsonString() else {
                #expect(throws: MessageError.self) { try made.jsonString() }
                continue
            }
            #expect(try made.jsonString() == json)
            let read = { (type: MessageDescriptor) in
                try DynamicMessage(type, jsonString: json, partial: true).serializedBytes(partial: true)
            }
            // Two fields with the same name cannot both be read.
            if Set(linked.fields.map(\.jsonName)).count < linked.fields.count, (try? read(linked)) == nil {
                #expect(throws: MessageError.self) { try read(type) }
            } else {
                #expect(try read(type) == read(linked))
            }
        }
    }
}
