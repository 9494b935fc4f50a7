import Testing

@testable import LifelineCodegen

@Suite struct GeneratorOptionsTests {
    @Test func readsEveryParameter() throws {
        let options = try GeneratorOptions(
            parameter: "SwiftTarget=A,CTarget=CA,Visibility=Package,ModuleMapping=x/y.proto:B:CB,ModuleMapping=z/:D:CD"
        )
        #expect(options.swiftTarget == "A" && options.cTarget == "CA" && options.visibility == .package)
        #expect(options.modules["x/y.proto"] == .init(swift: "B", c: "CB"))
        #expect(options.modules["z"] == .init(swift: "D", c: "CD"))
        #expect(try GeneratorOptions(parameter: targets).visibility == .internal)
        #expect(try GeneratorOptions(parameter: targets).services == .withMessages)
        #expect(try GeneratorOptions(parameter: "\(targets),Services=true").services == .withMessages)
        #expect(try GeneratorOptions(parameter: "\(targets),Services=false").services == .leftOut)
        #expect(try GeneratorOptions(parameter: "\(targets),Services=only").services == .only)
    }

    @Test func compatibilityChangesTheModulesOfWellKnownTypes() throws {
        let options = try GeneratorOptions(
            parameter: "\(targets),ModuleMapping=google/protobuf/any.proto:B:CB,Compatibility=SwiftProtobuf"
        )
        #expect(options.compatibility == .swiftProtobuf)
        #expect(options.modules["google/protobuf"]?.swift == "LifelineSwiftProtobufCompatibility")
        #expect(options.modules["google/protobuf"]?.c == "CLifelineWellKnownTypes")
        #expect(options.modules["google/protobuf/any.proto"] == .init(swift: "B", c: "CB"))
        #expect(try GeneratorOptions(parameter: "\(targets),Compatibility=Lifeline").compatibility == .lifeline)
    }

    @Test func importsOfSwiftProtobufsProgramsArePlain() throws {
        let compatible = "\(targets),Compatibility=SwiftProtobuf"
        #expect(try GeneratorOptions(parameter: targets).usesAccessLevelOnImports)
        #expect(try !GeneratorOptions(parameter: compatible).usesAccessLevelOnImports)
        for (value, isUsed) in [("true", true), ("false", false)] {
            let options = try GeneratorOptions(parameter: "\(compatible),UseAccessLevelOnImports=\(value)")
            #expect(options.usesAccessLevelOnImports == isUsed)
        }
    }

    @Test func servicesAloneNeedNoCTarget() throws {
        #expect(try GeneratorOptions(parameter: "SwiftTarget=A,Services=only").swiftTarget == "A")
    }

    @Test(arguments: [
        ("", "must name both targets"),
        ("SwiftTarget=A", "must name both targets"),
        ("CTarget=A", "must name both targets"),
        ("SwiftTarget=A,CTarget=A", "both A"),
        ("SwiftTarget=,CTarget=B", "SwiftTarget needs a module's name, and \"\" is none"),
        ("SwiftTarget=A-B,CTarget=C", "\"A-B\" is none"),
        ("SwiftTarget=1A,CTarget=C", "\"1A\" is none"),
        ("SwiftTarget=É,CTarget=C", "\"É\" is none"),
        ("SwiftTarget=../A,CTarget=C", "\"../A\" is none"),
        ("SwiftTarget=A,CTarget=B/C", "\"B/C\" is none"),
        ("\(targets),Visibility=public", "Visibility is Public, Package or Internal, not \"public\""),
        ("\(targets),Visibility", "not \"\""),
        ("\(targets),Services=no", "Services is true, false or only, not \"no\""),
        ("\(targets),Compatibility=swift", "Compatibility is Lifeline or SwiftProtobuf, not \"swift\""),
        ("\(targets),UseAccessLevelOnImports=no", "UseAccessLevelOnImports is true or false, not \"no\""),
        ("CTarget=A,Services=only", "must name the target of the services"),
        ("\(targets),ModuleMapping=a:B", "FILE_OR_FOLDER:SWIFT_MODULE:C_MODULE, not \"a:B\""),
        ("\(targets),ModuleMapping=:B:C", "not \":B:C\""),
        ("\(targets),ModuleMapping=a:B:C:D", "not \"a:B:C:D\""),
        ("\(targets),ModuleMapping=a:B C:D", "ModuleMapping needs a module's name, and \"B C\" is none"),
        ("\(targets),ModuleMapping=a:B:", "ModuleMapping needs a module's name, and \"\" is none"),
        ("\(targets),FileNaming=FullPath", "no parameter \"FileNaming\""),
        ("\(targets),swifttarget=A", "no parameter \"swifttarget\""),
        ("SwiftTarget=A,CTarget=C,SwiftTarget=B", "SwiftTarget is both \"A\" and \"B\""),
        ("\(targets),Visibility=Public,Visibility=Internal", "Visibility is both \"Public\" and \"Internal\""),
        ("\(targets),ModuleMapping=a:B:C,ModuleMapping=a:D:E", "ModuleMapping is both \"a:B:C\" and \"a:D:E\""),
    ])
    func saysWhatIsWrong(parameter: String, complaint: String) {
        let error = #expect(throws: GeneratorError.self) { try GeneratorOptions(parameter: parameter) }
        #expect(error?.description.hasPrefix("--lifeline_opt") == true)
        #expect(error?.description.contains(complaint) == true, "\(error?.description ?? "")")
    }

    @Test func theLongestMappedPrefixCounts() throws {
        let options = try GeneratorOptions(
            parameter: "\(targets),ModuleMapping=a:A:CA,ModuleMapping=a/b:B:CB,ModuleMapping=a/b/c.proto:C:CC"
        )
        let module = { options.module(ofFile: $0, isGeneratedHere: false).swift }
        #expect(module("a/x.proto") == "A")
        #expect(module("a/b/x.proto") == "B")
        #expect(module("a/b/c.proto") == "C")
        #expect(module("a/bc/x.proto") == "A")
        #expect(module("ab/x.proto") == "Sample")
        #expect(module("google/protobuf/any.proto") == "LifelineWellKnownTypes")
        #expect(module("google/protobuf/descriptor.proto") == "LifelineDescriptorTypes")
        #expect(module("google/protobuf/compiler/plugin.proto") == "LifelineDescriptorTypes")
        #expect(options.module(ofFile: "a/b/c.proto", isGeneratedHere: true).swift == "Sample")
    }

    @Test func theSameTwiceIsNoContradiction() throws {
        let options = try GeneratorOptions(parameter: "\(targets),\(targets),ModuleMapping=a:B:C,ModuleMapping=a:B:C")
        #expect(options.modules["a"] == .init(swift: "B", c: "C"))
    }

    @Test func filesGoWhereTheirTargetsAre() throws {
        let options = try GeneratorOptions(parameter: targets)
        #expect(options.swiftPath(for: "a/b_c.v1.proto") == "Sample/a_b_c.v1.pb.swift")
        #expect(options.cHeaderPath(for: "a/b.proto", suffix: ".lifeline.h") == "CSample/include/a/b.lifeline.h")
        #expect(options.cSourcePath(for: "a/b.proto", suffix: ".lifeline.c") == "CSample/a/b.lifeline.c")
        #expect(options.cPath(ofProtobufCFile: "a/b.pb-c.h") == "CSample/include/a/b.pb-c.h")
        #expect(options.cPath(ofProtobufCFile: "a/b.pb-c.c") == "CSample/a/b.pb-c.c")
    }
}
