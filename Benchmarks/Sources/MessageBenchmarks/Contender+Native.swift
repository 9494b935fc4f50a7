internal import NativeContender

extension Contender {
    /// A library in another language. It serializes into memory that it reuses for each message.
    static func native(_ name: String, _ contender: native_contender, _ workload: Workload) -> Contender {
        var description = workload.nativeDescription()
        let prepared = contender.prepare(&description)
        var native = Contender(
            name: name,
            passes: [
                .parse: { contender.parse(prepared) },
                .parseRead3: { contender.parse_read_3(prepared) },
                .parseReadAll: { contender.parse_read_all(prepared) },
                .serialize: { contender.serialize(prepared) },
                .buildSerialize: { contender.build_serialize(prepared) },
            ],
            serialized: { contender.serialized(prepared, $0).array },
            built: { contender.built(prepared, $0).array },
            memory: Memory(
                keep: { contender.keep(prepared) },
                release: { contender.release(prepared) },
                handleSize: contender.handle_size
            )
        )
        if let parse = contender.json_parse, let print = contender.json_print {
            native.passes[.jsonParse] = { parse(prepared) }
            native.passes[.jsonPrint] = { print(prepared) }
            native.printed = { contender.printed(prepared, $0).array }
            native.parsedJSON = { contender.parsed_json(prepared, $0).array }
        }
        return native
    }
}

extension plain_text {
    fileprivate var array: [UInt8] { [UInt8](UnsafeRawBufferPointer(start: bytes, count: count)) }
}
