import LifelineMessages
import TestProtos
import Testing

/// Declarations with awkward names can be used. Compiling this file is half of the test.
@Suite struct GeneratedCodeNamesTests {
    private func fieldNumbers(_ message: some Message) throws -> [Int] {
        // All fields are strings of one letter here: tag, length, letter.
        var numbers: [Int] = []
        var rest = try message.serializedBytes()[...]
        while let first = rest.popFirst() {
            var tag = Int(first & 0x7F)
            if first >= 0x80, let second = rest.popFirst() { tag |= Int(second) << 7 }
            numbers.append(tag >> 3)
            rest = rest.dropFirst(2)
        }
        return numbers
    }

    @Test func wordsOfSwift() throws {
        let message = Test_Names_SwiftWords.with {
            $0.self_p = "a"
            $0.self_p_2 = "b"
            $0.init_p = "c"
            $0.type = "d"
            $0.type_5 = "e"
            $0.protocol = "f"
            $0.protocol_7 = "g"
            $0.in = "h"
        }
        #expect(try fieldNumbers(message) == Array(1...8))
        #expect(message.hasSelf_p && message.hasSelf_p_2 && message.hasIn && !message.hasIs)
        #expect(try Test_Names_SwiftWords(serializedBytes: message.serializedBytes()).self_p_2 == "b")
    }

    @Test func wordsOfC() throws {
        var message = Test_Names_CWords()
        message.class = "c"
        message.register = "r"
        message.linux = "l"
        message.errno = "e"
        message.int = "i"
        message.null = "n"
        message.bool = "b"
        message.clearBool()
        let decoded = try Test_Names_CWords(serializedBytes: message.serializedBytes())
        #expect(decoded.class == "c" && decoded.register == "r" && decoded.linux == "l" && decoded.errno == "e")
        #expect(decoded.int == "i" && decoded.null == "n" && !decoded.hasBool)
    }

    @Test func membersOfMessagesAndOfGeneratedCode() throws {
        let message = Test_Names_Members.with {
            $0.description_p = "d"
            $0.hashValue_p = "h"
            $0.unknownFields_p = "u"
            $0.textFormat = "t"
            $0.merge = "m"
            $0.fields = "f"
            $0.fields_25 = "g"
            $0.base = "b"
            $0.foo = "1"
            $0.foo_41 = "2"
            $0.foo_42 = "3"
        }
        var copy = try Test_Names_Members(serializedBytes: message.serializedBytes())
        #expect(copy == message)
        #expect([copy.foo, copy.foo_41, copy.foo_42, copy.fields, copy.fields_25] == ["1", "2", "3", "f", "g"])
        #expect(copy.unknownFields == [] && copy.debugDescription.contains("text_format: \"t\""))
        try copy.merge(serializedBytes: [])
        #expect(copy == message)
    }

    @Test func repeatedFieldsAndMaps() throws {
        let message = Test_Names_RepeatedWords.with {
            $0.class = ["a"]
            $0.self_p = ["b"]
            $0.fields = ["c"]
            $0.fields.append("d")
            $0.list += ["e"]
            $0.count = ["f"]
            $0.default["g"] = "h"
            $0.entries["i", default: "j"] += "k"
        }
        let decoded = try Test_Names_RepeatedWords(serializedBytes: message.serializedBytes())
        #expect(decoded == message && decoded.fields == ["c", "d"] && decoded.entries["i"] == "jk")
    }

    @Test func oneofs() throws {
        var words = Test_Names_OneofWords()
        for value: Test_Names_OneofWords.OneOf_Words in [.await("a"), .self_p("b"), .in("c"), .init_p("d"), .none("e")]
        {
            words.words = value
            #expect(try Test_Names_OneofWords(serializedBytes: words.serializedBytes()).words == value)
        }
        var message = Test_Names_Oneofs.with {
            $0.x = .a(1)
            $0.fooBar = .c(2)
            $0.foo_Bar = .d(3)
            $0.fooBar_7 = .e(4)
            $0.xCase = 5
        }
        #expect(message.a == 1 && message.c == 2 && message.d == 3 && message.e == 4)
        message.fooBar = nil
        #expect(message.fooBar == nil && message.foo_Bar == .d(3) && message.x == .a(1) && message.xCase == 5)
        let shape = Test_Names_Shape.with { $0.circle.radius = 2 }
        #expect(shape.shape == .circle(.with { $0.radius = 2 }))
    }

    @Test func fieldsNamedLikeWhatOthersAdd() throws {
        var message = Test_Names_Presence.with { $0.hasFoo_p = true }
        #expect(!message.hasFoo)
        message.foo = 0
        message.clearFoo_p = "text"
        message.hasFooCase_p = 3
        #expect(message.hasFoo && message.hasFoo_p)
        message.clearFoo()
        #expect(!message.hasFoo && message.hasFoo_p && message.clearFoo_p == "text" && message.hasFooCase_p == 3)

        let counts = Test_Names_Counts.with {
            $0.items = [1, 2, 3]
            $0.nItems = 10
            $0.nNItems = 20
            $0.nCount = [4]
            $0.count = [5: 6]
        }
        let decoded = try Test_Names_Counts(serializedBytes: counts.serializedBytes())
        #expect(decoded.items == [1, 2, 3] && decoded.nItems == 10 && decoded.nNItems == 20)
        #expect(decoded.nCount == [4] && decoded.count == [5: 6])
    }

    @Test func fieldsNamedLikeTheMethodsThatLendOthers() throws {
        let message = Test_Names_Lending.with {
            $0.name = "n"
            $0.data = [1]
            $0.title = "t"
            $0.withChosenSpan_5 = 5
            $0.withNameUtf8Span = 6
            $0.withTitleSpan = "s"
            $0.withDataSpan_8 = [8]
            $0.withTitleUtf8Span = ["r"]
            $0.withLateSpan = true
            $0.late_11 = [11]
            $0.withLateUtf8Span = "l"
            $0.many = ["m"]
            $0.withManyUtf8Span = true
        }
        let decoded = try Test_Names_Lending(serializedBytes: message.serializedBytes())
        #expect(decoded == message)
        #expect(decoded.withNameUTF8Span { String(copying: $0) } == "n" && decoded.withNameUtf8Span == 6)
        #expect(decoded.withDataSpan { $0[0] } == 1 && decoded.withWithDataSpanSpan_8 { $0[0] } == 8)
        #expect(decoded.withTitleUTF8Span { String(copying: $0) } == "t" && decoded.withTitleUtf8Span == ["r"])
        #expect(decoded.withWithTitleSpanUTF8Span { String(copying: $0) } == "s" && decoded.withTitleSpan == "s")
        #expect(decoded.choice == .withChosenSpan_5(5) && decoded.withChosenSpan_5 == 5)
        #expect(decoded.withChosenSpan { $0.isEmpty })
        #expect(decoded.withLateSpan && decoded.withLateSpan_11 { $0[0] } == 11)
        #expect(decoded.withWithLateUtf8SpanUTF8Span { String(copying: $0) } == "l")
    }

    @Test func typesNamedLikeOthers() throws {
        let message = Test_Names_Types.with {
            $0.of1.text = "Message"
            $0.of2 = Test_Names_Types.StringMessage.with { $0.text = "String" }
            $0.of11 = Test_Names_Types.Optional.with { $0.text = "Optional" }
            $0.of27 = Test_Names_Types.FILE.with { $0.text = "FILE" }
            $0.of35 = Test_Names_Types.FooBar.with { $0.text = "FooBar" }
            $0.of34 = Test_Names_Types.foo_bar.with { $0.text = "foo_bar" }
            $0.scalar14 = "string"
            $0.optional13 = false
            $0.chosenByte.text = "UInt8"
        }
        let decoded = try Test_Names_Types(serializedBytes: message.serializedBytes())
        #expect(decoded == message && decoded.of34.text == "foo_bar" && decoded.of35.text == "FooBar")
        #expect(decoded.choice == .chosenByte(.with { $0.text = "UInt8" }) && decoded.hasOptional13)
    }

    @Test func nestedTypesThatHideOuterOnes() throws {
        let message = Outer.with {
            $0.own.nested = true
            $0.outer.flag = true
            $0.outers[1] = Unpackaged.with { $0.name = "outer" }
            $0.ownKind = .nestedKindUnspecified
            $0.outerKind = .some
            $0.outermost.outermost = Outer()
        }
        let nested = Outer.Outer.with { $0.inner.own.middle.inner.outermost.outer.name = "deep" }
        #expect(nested.inner.own.middle.inner.outermost.outer.name == "deep")
        #expect(try Outer(serializedBytes: message.serializedBytes()) == message)
    }

    @Test func casesOfEnums() {
        typealias Closed = Test_Names_Cases_Closed
        #expect(Closed.none.rawValue == 0 && Closed.some.rawValue == 1 && Closed.self_4.rawValue == 4)
        let maybe: Closed? = Closed.none
        #expect(maybe != nil)
        #expect(Closed.allCases.count == 48)
        #expect(Closed.allCases.allSatisfy { Closed(rawValue: $0.rawValue) == $0 })
        #expect(Test_Names_Cases_Cases().closed == .self_3)
        #expect(Test_Names_Cases_Cases().prefixed == .prefixed1)
        typealias Raw = Test_Names_OpenCases_Raw
        #expect(Raw.allCases.map(\.rawValue) == Array(0...6))
        #expect(Raw(rawValue: 4) == .unrecognized && Raw(rawValue: 9) == .UNRECOGNIZED(9))
        let holder = Test_Names_OpenCases_Holder.with { $0.mapped = ["a": .none, "b": .init_] }
        #expect(holder.mapped["b"] == .init_)
    }

    @Test func aPrefixOfTheFile() {
        #expect(PreMessage.with { $0.kind = .none }.kind == PreKind.none)
        #expect(PreMessage.protoMessageName == "test.names.prefixed.Message")
    }
}
