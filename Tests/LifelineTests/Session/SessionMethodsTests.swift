import LifelineCore
import LifelineMessages
import Testing

@testable import Lifeline

@Suite struct SessionMethodsTests {
    @Test func everyMethodIsFoundByItsNameAndNoOther() throws {
        // Names of equal length, prefixes of others, and names that differ at either end.
        let others = ["a", "b", "ab", "ba", "aa", "", "t.T/Method", "t.T/M\u{e9}thode"]
        let names = (0..<40).map { "t.T/Method\($0)" } + others
        let methods = try SessionMethods(names.map { TestService(method($0)) })
        for name in names { #expect(find(name, in: methods) == name) }
        for name in ["c", "t.T/Method40", "t.T/Metho", "u.T/Method1", "abc", "t.T/Me\u{301}thode"] {
            #expect(find(name, in: methods) == nil)
        }
        #expect(find("a", in: try SessionMethods([])) == nil)
    }

    @Test func aNameIsOneMethods() throws {
        #expect {
            try SessionMethods([TestService(method("t.T/A"), method("t.T/B")), TestService(method("t.T/A"))])
        } throws: {
            let error = $0 as? ConnectionError
            return error?.code == .invalidConfiguration && error?.message.contains("t.T/A") == true
        }
    }

    private func method(_ name: String) -> SessionMethod { .push(name) { (_: RawMessage, _) in } }

    private func find(_ name: String, in methods: SessionMethods) -> String? {
        methods.index(of: name).map { methods[$0].name }
    }
}
