public import Lifeline
internal import LifelineMessages

// The methods for clients.
extension Fleet: Lifeline_Fleet_V1_GroupsHandler {
    public func join(
        _ request: Lifeline_Fleet_V1_JoinRequest,
        context: SessionContext
    ) async throws -> Lifeline_Fleet_V1_JoinReply {
        let group = request.group
        do {
            try FleetError.checkName(group)
            try await configuration.mayJoin(group, context.session)
            let join = try await join(group, context.session, from: GroupStart(request))
            return .with {
                $0.position = .init(join.position)
                $0.recovered = join.isRecovered
            }
        } catch let error as FleetError {
            throw SessionStatus(error)
        }
    }

    public func leave(
        _ request: Lifeline_Fleet_V1_LeaveRequest,
        context: SessionContext
    ) async throws -> Lifeline_Fleet_V1_LeaveReply {
        leave(request.group, context.session)
        return Lifeline_Fleet_V1_LeaveReply()
    }

    public func watchPresence(
        _ request: Lifeline_Fleet_V1_WatchPresenceRequest,
        to stream: SessionStreamWriter<Lifeline_Fleet_V1_PresenceUpdate>,
        context: SessionContext
    ) async throws {
        let (group, session) = (request.group, context.session)
        do {
            try FleetError.checkName(group)
            let watchesAsMember = groups(of: session).contains(group)
            if !watchesAsMember { try await configuration.mayJoin(group, session) }
            for try await event in presence(of: group) {
                // It only sees what it could see as a member.
                if watchesAsMember, !groups(of: session).contains(group) {
                    try await configuration.mayJoin(group, session)
                }
                for update in Lifeline_Fleet_V1_PresenceUpdate.updates(of: event) { try await stream.send(update) }
            }
        } catch let error as FleetError {
            throw SessionStatus(error)
        }
    }
}

extension GroupStart {
    fileprivate init(_ request: Lifeline_Fleet_V1_JoinRequest) {
        self =
            switch request.start {
            case .after(let position): .after(GroupPosition(position))
            case .earliest(true): .earliest
            case .earliest(false), nil: .now
            }
    }
}

extension GroupPosition {
    init(_ position: Lifeline_Fleet_V1_Position) {
        self.init(epoch: position.epoch, offset: position.offset)
    }
}

extension Lifeline_Fleet_V1_Position {
    init(_ position: GroupPosition) {
        self.init()
        (epoch, offset) = (position.epoch, position.offset)
    }
}

extension SessionStatus {
    fileprivate init(_ error: FleetError) {
        self =
            switch error.code {
            case .badName, .badMessage: SessionStatus(.invalidArgument, error.message)
            case .tooManyGroups: SessionStatus(.resourceExhausted, error.message)
            case .sessionEnded, .cancelled: SessionStatus(.cancelled, error.message)
            default: SessionStatus(.unavailable, error.message)
            }
    }
}
