internal import NativeContender

// A workload as C structs. They are prepared once, used until the process ends, and never freed.

extension Workload {
    func nativeDescription() -> native_workload {
        var description = native_workload()
        description.encoded = kept(encoded.map { plain_text($0) })
        description.json = kept(json.map { plain_text($0) })
        description.count = encoded.count
        switch content {
        case .envelopes(let envelopes): description.envelopes = kept(envelopes.map { plain_envelope($0) })
        case .batches(let batches): description.batches = kept(batches.map { plain_batch($0) })
        }
        return description
    }
}

extension plain_batch {
    fileprivate init(_ batch: PlainBatch) {
        self.init(
            items: kept(batch.items.map { plain_envelope($0) }),
            item_count: batch.items.count,
            snapshot: plain_text(batch.snapshot.array),
            cursor: batch.cursor
        )
    }
}

extension plain_envelope {
    fileprivate init(_ envelope: PlainEnvelope) {
        self.init()
        seq = envelope.seq
        ts = envelope.ts
        switch envelope.body {
        case .chat(let chat): self.chat = kept([plain_chat(chat)])
        case .ack(let ack):
            self.ack = kept([plain_ack(up_to: ack.upTo, code: ack.code, session: plain_text(ack.session))])
        case .ping(let token): self.token = token
        }
    }
}

extension plain_chat {
    fileprivate init(_ chat: PlainChat) {
        self.init()
        id = plain_text(chat.id)
        from = plain_text(chat.from)
        to = plain_text(chat.to)
        text = plain_text(chat.text)
        attachments = kept(
            chat.attachments.map {
                plain_attachment(url: plain_text($0.url), sha256: plain_text($0.sha256.array), size: $0.size)
            }
        )
        attachment_count = chat.attachments.count
        headers = kept(chat.headers.map { plain_header(key: plain_text($0.key), value: plain_text($0.value)) })
        header_count = chat.headers.count
        mentions = kept(chat.mentions)
        mention_count = chat.mentions.count
        kind = Int32(chat.kind)
        flags = chat.flags
        author = chat.author.map { kept([plain_user($0)]) }
        ttl = chat.ttl.map { kept([$0]) }
        nonce = chat.nonce
    }
}

extension plain_user {
    fileprivate init(_ user: PlainUser) {
        self.init(
            id: user.id,
            name: plain_text(user.name),
            avatar_url: plain_text(user.avatarURL),
            level: user.level,
            verified: user.isVerified
        )
    }
}

extension plain_text {
    fileprivate init(_ text: String) { self.init([UInt8](text.utf8)) }

    /// With a final NUL, which does not count.
    fileprivate init(_ bytes: [UInt8]) {
        self.init(bytes: kept(bytes.map { CChar(bitPattern: $0) } + [0]), count: bytes.count)
    }
}

private func kept<Element>(_ elements: [Element]) -> UnsafePointer<Element> {
    let memory = UnsafeMutableBufferPointer<Element>.allocate(capacity: max(elements.count, 1))
    _ = memory.initialize(fromContentsOf: elements)
    return UnsafePointer(memory.baseAddress.unsafelyUnwrapped)
}
