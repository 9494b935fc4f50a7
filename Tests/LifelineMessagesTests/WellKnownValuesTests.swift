import LifelineMessages
import LifelineWellKnownTypes
import Testing

/// Literals, initializers and subscripts of JSON values, wrappers and field masks.
@Suite struct WellKnownValuesTests {
    @Test func jsonObjects() throws {
        var object: Google_Protobuf_Struct = ["name": "Ada", "age": 36, "tags": [true, nil, 1.5], "inner": ["a": 1]]
        #expect(try object.jsonString() == #"{"age":36,"inner":{"a":1},"name":"Ada","tags":[true,null,1.5]}"#)
        #expect(object["name"]?.stringValue == "Ada" && object["missing"] == nil)
        object["name"] = nil
        object["age"] = 37
        object["tags"]?.listValue[1] = "x"
        object["inner"]?.structValue["b"] = [:]
        #expect(try object.jsonString() == #"{"age":37,"inner":{"a":1,"b":{}},"tags":[true,"x",1.5]}"#)
        object["age"] = .some(nil)
        #expect(object["age"] == .some(nil) && object.fields.count == 3)

        #expect(Google_Protobuf_Struct(fields: ["a": 1]) == ["a": 1])
        #expect(Google_Protobuf_Struct(fields: [:]) == [:])
        #expect(Google_Protobuf_Struct(fields: object.fields) == object)
        let twice: Google_Protobuf_Struct = ["a": 1, "a": 2]
        #expect(twice == ["a": 2])
    }

    @Test func jsonArrays() throws {
        var list: Google_Protobuf_ListValue = [1, "two", [3]]
        #expect(list[1].stringValue == "two" && list[2].listValue[0].numberValue == 3)
        let copy = list
        list[0] = nil
        list[2].listValue[0].numberValue += 1
        #expect(try list.jsonString() == #"[null,"two",[4]]"# && copy == [1, "two", [3]])
        #expect(Google_Protobuf_ListValue(values: [1, 2]) == [1, 2])
        #expect(Google_Protobuf_ListValue(values: list.values) == list && Google_Protobuf_ListValue(values: []) == [])
    }

    @Test func jsonValues() throws {
        #expect(Google_Protobuf_Value(numberValue: 1) == 1 && Google_Protobuf_Value(numberValue: 1.5) == 1.5)
        #expect(Google_Protobuf_Value(stringValue: "a") == "a" && Google_Protobuf_Value(boolValue: true) == true)
        #expect(Google_Protobuf_Value(structValue: ["a": nil]) == ["a": nil])
        #expect(Google_Protobuf_Value(listValue: ["a"]) == ["a"])
        #expect(Google_Protobuf_Value(structValue: [:]).kind == .structValue([:]))
        #expect(throws: MessageError.self) { try Google_Protobuf_Value(numberValue: .nan).jsonString() }
    }

    @Test func wrappers() {
        #expect(Google_Protobuf_DoubleValue(-1.5) == -1.5 && Google_Protobuf_FloatValue(0.1) == 0.1)
        #expect(Google_Protobuf_Int64Value(.min) == -9_223_372_036_854_775_808)
        #expect(Google_Protobuf_UInt64Value(.max) == 18_446_744_073_709_551_615)
        #expect(Google_Protobuf_Int32Value(-1) == -1 && Google_Protobuf_UInt32Value(.max) == 4_294_967_295)
        #expect(Google_Protobuf_BoolValue(true) == true && Google_Protobuf_StringValue("é") == "é")
    }

    @Test func emptyMessagesTakeNoMemory() {
        #expect(Google_Protobuf_Duration()._message.untyped.storage == nil)
        #expect(Google_Protobuf_FieldMask()._message.untyped.storage == nil && Google_Protobuf_FieldMask() == [])
        #expect(Google_Protobuf_ListValue()._message.untyped.storage == nil && Google_Protobuf_ListValue() == [])
        #expect(Google_Protobuf_Struct()._message.untyped.storage == nil && Google_Protobuf_Struct() == [:])
        #expect(Google_Protobuf_Timestamp()._message.untyped.storage == nil)
        #expect(Google_Protobuf_Value()._message.untyped.storage == nil && Google_Protobuf_Value().kind == nil)
    }

    // MARK: Field masks

    @Test func masks() throws {
        let mask: Google_Protobuf_FieldMask = ["text", "author.display_name"]
        #expect(Array(mask.paths) == ["text", "author.display_name"])
        #expect(Google_Protobuf_FieldMask(protoPaths: "text", "author.display_name") == mask)
        #expect(Google_Protobuf_FieldMask(protoPaths: ["text", "author.display_name"]) == mask)
        #expect(Google_Protobuf_FieldMask(protoPaths: []) == Google_Protobuf_FieldMask())
        #expect(Google_Protobuf_FieldMask(jsonPaths: "text", "author.displayName") == mask)
        #expect(try mask.jsonString() == #""text,author.displayName""#)
        #expect(Google_Protobuf_FieldMask(jsonPaths: #"a"\b"#) == [#"a"\b"#])
        #expect(Google_Protobuf_FieldMask(jsonPaths: "text", "display_name") == nil)
    }
}
