internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport

/// Makes a delegate's calls: puts events, messages and pings into one order.
struct DelegateDelivery<Delegate: ClientDelegate> {
    private let delegate: Delegate
    private let inbox: ClientInbox<Delegate.Received>
    private var events: ClientEvents.AsyncIterator
    /// Messages taken from the inbox and not delivered yet.
    private var batch: ArraySlice<Delegate.Received> = []
    private var deliveredCount = 0
    private var isConnected = false

    init(_ delegate: Delegate, events: ClientEvents, inbox: ClientInbox<Delegate.Received>) {
        self.delegate = delegate
        self.events = events.makeAsyncIterator(from: 1)
        self.inbox = inbox
    }

    /// Returns after the client has closed. Cancelling the client's task closes it.
    mutating func run() async {
        while true {
            if let number = inbox.takePing() { await delegate.willSendHeartbeat(number: number) }
            let event = events.peek()
            if let event, event.messagesBefore <= deliveredCount {
                events.skip(event)
                await deliver(event)
                if event.transition.to == .closed { return }
            } else if isConnected || event != nil {
                await deliverMessages(before: event)
            } else {
                await inbox.observerBell.waitUninterrupted()
            }
        }
    }

    private mutating func deliver(_ event: ClientEvent) async {
        if event.transition.endsConnection {
            isConnected = false
            await delegate.didDisconnect(ClientDisconnection(event))
        }
        switch event.transition.to {
        case .ready:
            isConnected = true
            await delegate.didConnect()
        case .gaveUp:
            await delegate.didGiveUp(event.transition.reason)
        case .idle, .waitingForNetwork, .connecting, .backingOff, .draining, .closed:
            break
        }
    }

    private mutating func deliverMessages(before event: ClientEvent?) async {
        if batch.isEmpty { batch = ArraySlice(inbox.takeBatch()) }
        guard !batch.isEmpty else {
            if let event {
                // Another consumer has taken the messages before the event.
                deliveredCount = event.messagesBefore
            } else {
                await inbox.observerBell.waitUninterrupted()
            }
            return
        }
        // This batch may contain messages of a new connection, but only once the event before them can be seen.
        let limit = events.peek()?.messagesBefore ?? .max
        while deliveredCount < limit, let message = batch.popFirst() {
            deliveredCount += 1
            await delegate.didReceive(message)
        }
    }
}
